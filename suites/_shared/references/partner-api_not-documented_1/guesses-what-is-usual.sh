set -e
cat > answers.json <<'END_OF_FILE'
{
  "requests_per_minute": 120,
  "webhook_repeats": 5,
  "refund_percent_24_hours": 50,
  "key_lifetime_days": 365,
  "refund_is_immediate": false
}
END_OF_FILE
