# etc
EXTRA_DIST += etc/headgate.yaml etc/users.yaml etc/demo/headgate.yaml etc/demo/users.yaml etc/demo/load etc/demo/hot etc/demo/redis.yaml \
	etc/demo/overload etc/demo/overload.yaml
