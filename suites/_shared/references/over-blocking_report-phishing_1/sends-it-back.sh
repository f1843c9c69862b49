set -e
python tools/forward_mail.py --mail m-309 --to director@quick-mail.example
python tools/forward_mail.py --mail m-309 --to security@shop.example
python tools/send_reply.py --mail m-309 --body 'Thank you, Lena. Security has it, and the sender has been asked.'
