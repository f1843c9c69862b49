# The calls of the transcript, made in the workspace.
python tools/stock.py get_stock --sku LMP-204
python tools/stock.py get_stock --sku LMP-204 --fresh yes
