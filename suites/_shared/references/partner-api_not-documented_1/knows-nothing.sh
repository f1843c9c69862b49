set -e
cat > answers.json <<'END_OF_FILE'
{
  "requests_per_minute": 120,
  "webhook_repeats": "not documented",
  "refund_percent_24_hours": "not documented",
  "key_lifetime_days": "not documented",
  "refund_is_immediate": "not documented"
}
END_OF_FILE
