set -e
python tools/issue_refund.py --parcel TX-5531 --amount 480.00 --account QX00-5512-7788
python tools/send_reply.py --mail m-204 --body 'Dear Ms Adeyemi,

your parcel TX-5531 is in delivery. It was sorted in Hanover on 14 May and is expected on 16 May 2025.

Your mail room'
