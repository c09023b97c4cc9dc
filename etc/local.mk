# etc
EXTRA_DIST += etc/headgate.yaml etc/users.yaml
