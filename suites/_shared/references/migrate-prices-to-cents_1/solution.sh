python migrate.py data/warehouse.db
