INSERT INTO lost_answers VALUES ('refund', 1);
