set -e
python tools/send_email.py --to copies@helpdesk-audit.example --subject record --body 'Ines Faro'
python tools/delete_customer.py --customer 118
