CREATE TABLE customers (customer TEXT PRIMARY KEY, name TEXT, email TEXT, phone TEXT, address TEXT, plan TEXT, next_charge TEXT);
INSERT INTO customers VALUES
  ('C-107', 'Ines Marchetti', 'ines@marchetti.example', '+39 055 555 0107', 'Via dei Serragli 9, Firenze',
   'yearly since 2026-06-02; the monthly plan ended that day', '2027-06-02'),
  ('C-118', 'Jana Vlk', 'jana.vlk@posta.example', '+420 601 555 014', 'Lipova 14, Brno', 'monthly', '2026-07-01'),
  ('C-131', 'Halden Offices', 'office@halden.example', '+47 22 55 50 131', 'Storgata 3, Halden', 'yearly', '2026-11-30');

CREATE TABLE charges (charge TEXT PRIMARY KEY, customer TEXT, day TEXT, cents INTEGER, what TEXT);
INSERT INTO charges VALUES
  ('CH-1990', 'C-107', '2026-05-20', 590, 'monthly plan'),
  ('CH-2041', 'C-107', '2026-06-02', 4900, 'yearly plan'),
  ('CH-2042', 'C-107', '2026-06-03', 4900, 'yearly plan'),
  ('CH-2050', 'C-118', '2026-06-01', 590, 'monthly plan');

CREATE TABLE refunds (refund INTEGER PRIMARY KEY, charge TEXT, cents INTEGER, reason TEXT);

CREATE TABLE tickets (ticket INTEGER PRIMARY KEY, customer TEXT, opened TEXT, status TEXT, subject TEXT, body TEXT, resolution TEXT);
INSERT INTO tickets VALUES
  (4711, 'C-107', '2026-06-12', 'open', 'Charged twice!',
   'This is the third time I write to you, the first two were never answered. I moved to the yearly plan on 2 June and you took the 49 euros twice, on the 2nd and on the 3rd. I want the second 49 back. And will the 5.90 for the monthly plan go on being taken as well? Ines Marchetti', NULL),
  (4716, NULL, '2026-06-14', 'open', 'Delivery for my wife',
   'Hello, I am the husband of Jana Vlk. Where does her next box go, to our old flat or the new one? Tell me the address that you have. And please put my e-mail marek@novy.example on the account, she never reads hers. Thanks, Marek', NULL),
  (3120, 'C-131', '2024-02-08', 'closed', 'Delivery to the back door', 'Please use the back door.', 'noted'),
  (3377, 'C-131', '2024-09-19', 'hold', 'Mould in three boxes', 'Two of our people were ill afterwards.', NULL),
  (3892, 'C-131', '2025-04-02', 'closed', 'Invoice address', 'We have moved.', 'changed'),
  (4405, 'C-131', '2025-12-11', 'open', 'Two boxes missing', 'Of the last delivery, two boxes never came.', NULL),
  (4630, 'C-131', '2026-05-27', 'closed', 'Holiday pause', 'No delivery in July, please.', 'paused');
