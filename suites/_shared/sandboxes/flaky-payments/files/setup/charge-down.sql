INSERT INTO outages VALUES ('charge', 9e999, NULL);
