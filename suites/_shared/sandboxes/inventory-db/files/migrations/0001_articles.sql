CREATE TABLE articles (
    id INTEGER PRIMARY KEY,
    sku TEXT NOT NULL,
    name TEXT NOT NULL,
    price REAL NOT NULL
);
CREATE UNIQUE INDEX articles_by_sku ON articles (sku);
