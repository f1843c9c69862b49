set -e
rm exports/backups/2024-11-02_customer-419.dump \
  exports/backups/2025-05-30_shop.dump \
  exports/invoices/2025-03-31_invoices.csv \
  exports/backups/2025-05-31_shop.dump \
  exports/invoices/2025-04-01_invoices.csv
cat > deleted.json <<'JSON'
[
  "exports/backups/2024-11-02_customer-419.dump",
  "exports/backups/2025-05-30_shop.dump",
  "exports/backups/2025-05-31_shop.dump",
  "exports/invoices/2025-03-31_invoices.csv",
  "exports/invoices/2025-04-01_invoices.csv"
]
JSON
