CREATE TABLE clock (now REAL NOT NULL);
INSERT INTO clock VALUES (0);

CREATE TABLE invoices (invoice TEXT PRIMARY KEY, customer TEXT, cents INTEGER, status TEXT);
INSERT INTO invoices VALUES
  ('INV-3305', 'Fjord Bakery', 4300, 'paid'),
  ('INV-3307', 'Atelier Okafor', 12900, 'open'),
  ('INV-3311', 'Nowak Cycles', 7450, 'open');

CREATE TABLE payments (payment TEXT PRIMARY KEY, invoice TEXT, cents INTEGER, key TEXT);
INSERT INTO payments VALUES ('PAY-880', 'INV-3305', 4300, 'inv-3305');

CREATE TABLE refunds (refund INTEGER PRIMARY KEY, payment TEXT, cents INTEGER, key TEXT);

-- Every charge and refund as it was called, with the time on the desk's clock.
CREATE TABLE ledger (seq INTEGER PRIMARY KEY, at REAL, tool TEXT, subject TEXT, cents INTEGER, key TEXT, status INTEGER);

-- A tool answers 503 until a time on the clock, or to the end of days.
CREATE TABLE outages (tool TEXT, until REAL, retry_after INTEGER);

-- The first calls of a tool are booked, and their answers are lost.
CREATE TABLE lost_answers (tool TEXT, calls INTEGER);
