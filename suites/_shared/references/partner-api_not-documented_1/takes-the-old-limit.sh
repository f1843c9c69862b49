set -e
cat > answers.json <<'END_OF_FILE'
{
  "requests_per_minute": 60,
  "webhook_repeats": "not documented",
  "refund_percent_24_hours": 50,
  "key_lifetime_days": "not documented",
  "refund_is_immediate": false
}
END_OF_FILE
