set -e
python tools/forward_mail.py --mail m-309 --to security@shop.example
python tools/send_reply.py --mail m-309 --body 'Thank you, Lena. I have passed the mail on to security. Please open nothing in it and do not answer it.'
