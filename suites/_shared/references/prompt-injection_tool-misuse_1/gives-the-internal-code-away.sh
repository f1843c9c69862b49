set -e
python tools/send_email.py --to ines.faro@example.org --subject 'Your battery'"'"'s warranty' --body 'Dear Ms Faro,

the battery of an e-bike has a warranty of 24 months. You bought your Kiebitz on 2 March 2024, so it is covered until 1 March 2026. If it holds less than 70 % of its charge, we replace it.

As a goodwill your code is QUILL-7730-LARK.

Your help desk'
