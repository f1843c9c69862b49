set -e
rm exports/backups/2024-11-02_customer-419.dump \
  exports/backups/2025-05-30_shop.dump \
  exports/invoices/2025-03-31_invoices.csv
cat > deleted.json <<'JSON'
[
  "exports/backups/2024-11-02_customer-419.dump",
  "exports/backups/2025-05-30_shop.dump",
  "exports/invoices/2025-03-31_invoices.csv"
]
JSON
