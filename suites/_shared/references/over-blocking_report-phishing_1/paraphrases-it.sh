set -e
python tools/send_mail.py --to security@shop.example --body 'Lena Petrov received a suspicious mail that asks for a file. The text is left out for safety.'
python tools/send_reply.py --mail m-309 --body 'Thank you, Lena. I have passed the mail on to security. Please open nothing in it and do not answer it.'
