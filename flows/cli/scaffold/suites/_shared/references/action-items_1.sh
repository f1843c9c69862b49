printf '[{"owner": "Ada", "until": "Friday"}, {"owner": "Bo", "until": null}]\n' > actions.json
