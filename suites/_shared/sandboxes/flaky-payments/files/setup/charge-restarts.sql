INSERT INTO outages VALUES ('charge', 5, 5);
