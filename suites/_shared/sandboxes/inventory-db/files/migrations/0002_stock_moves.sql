CREATE TABLE stock_moves (
    id INTEGER PRIMARY KEY,
    article_id INTEGER NOT NULL REFERENCES articles (id) ON DELETE CASCADE,
    moved_on TEXT NOT NULL,
    pieces INTEGER NOT NULL
);
CREATE INDEX stock_moves_by_article ON stock_moves (article_id);
