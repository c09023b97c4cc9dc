# etc
EXTRA_DIST += etc/headgate.yaml etc/users.yaml etc/demo/headgate.yaml etc/demo/users.yaml etc/demo/load etc/demo/hot etc/demo/redis.yaml \
	etc/demo/overload etc/demo/overload.yaml
# completion for bash
bashcompletiondir = $(datadir)/bash-completion/completions
dist_bashcompletion_DATA = etc/bash-completion/headgate etc/bash-completion/headgatectl \
	etc/bash-completion/headgate-load
