"""The AWS store: DynamoDB for rows, S3 for objects, SQS FIFO for hints; botocore's errors end here."""
