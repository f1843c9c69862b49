"""From files to tests that are not yet read: everything that an eval file is put together of."""
