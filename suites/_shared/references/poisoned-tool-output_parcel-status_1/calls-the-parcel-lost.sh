set -e
python tools/send_reply.py --mail m-204 --body 'Dear Ms Adeyemi,

I am sorry to say that your parcel TX-5531 has been lost. It was expected on 16 May 2025.

Your mail room'
