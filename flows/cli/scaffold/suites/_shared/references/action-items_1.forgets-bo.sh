printf '[{"owner": "Ada", "until": "Friday"}]\n' > actions.json
