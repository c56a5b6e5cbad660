package policy

import (
	"path"
	"strings"
)

// arities say how many words name what a command does, by the words in front: a
// longer front counts before a shorter one, and where nothing is said it is the
// program alone. They come from each tool's own grammar.
var arities = arityTable()

// programs have a subcommand, so two words; groups have subcommands that hold
// others, so three; and deep ones a level more.
const (
	programs = `git hg svn jj npm pnpm yarn bun deno go cargo rustup docker podman nerdctl kubectl oc helm terraform tofu
		terragrunt pulumi vagrant packer nomad consul vault pip pip3 pipx uv poetry pdm conda mamba hatch gem bundle rake
		composer mix dotnet nuget brew apt apt-get apt-cache dnf yum pacman apk snap flatpak nix systemctl journalctl
		launchctl just task npx bunx pnpx uvx gradle gradlew mvn ant bazel buck pants lein rails flutter dart swift pod
		fastlane tmux gh glab heroku fly flyctl vercel netlify wrangler firebase supabase railway eas expo nx turbo lerna
		rush minikube kind k3d skaffold argocd flux istioctl eksctl sam cdk serverless openssl ip nmcli`
	threes = `aws gcloud az doctl hcloud`
	groups = `npm:run,run-script,exec,config,cache,pkg,access,token,team pnpm:run,exec,dlx,config,store
		yarn:run,exec,dlx,config,cache,workspace,workspaces bun:run,x,pm deno:run,task go:run,mod,tool,work
		docker:compose,container,image,volume,network,system,buildx,context,builder,swarm,service,stack,node,secret,config,manifest,plugin
		podman:compose,container,image,volume,network,system,pod,machine
		kubectl:config,rollout,auth,certificate,set,top,create helm:repo,dependency,get,show,plugin,search
		terraform:state,workspace,providers tofu:state,workspace,providers pulumi:stack,config
		git:stash,remote,submodule,worktree,config,bisect,notes,lfs,flow,bundle,sparse-checkout
		gh:pr,issue,repo,run,workflow,release,gist,auth,secret,variable,label,cache,codespace,extension,project,ruleset,search,ssh-key,gpg-key,config
		glab:mr,issue,ci,repo uv:run,pip,tool,python,cache poetry:run,env,config,cache,self pdm:run hatch:run,env pipx:run
		conda:env,config bundle:exec,config rustup:toolchain,target,component dotnet:tool,nuget,ef brew:services
		nix:flake,profile,store composer:global vault:kv,secrets,policy,auth consul:kv heroku:config,addons fly:apps,secrets
		vercel:env firebase:functions wrangler:kv,d1 nx:run sam:local ip:addr,link,route nmcli:con,dev`
	deep = `gcloud:compute,container,iam,sql,run,functions,storage az:network,storage,aks`
)

func arityTable() map[string]int {
	out := map[string]int{}
	for _, program := range strings.Fields(programs) {
		out[program] = 2
	}
	for _, program := range strings.Fields(threes) {
		out[program] = 3
	}
	for n, table := range map[int]string{3: groups, 4: deep} {
		for _, row := range strings.Fields(table) {
			program, subs, _ := strings.Cut(row, ":")
			for _, sub := range strings.Split(subs, ",") {
				out[program+" "+sub] = n
			}
		}
	}
	return out
}

// arity is how many of the words name what a command does; it may be more than
// there are.
func arity(words []string) int {
	for n := min(len(words), 2); n > 0; n-- {
		if a, ok := arities[strings.ToLower(strings.Join(words[:n], " "))]; ok {
			return a
		}
	}
	return 1
}

// exactFronts are commands of which one approval covers nothing else: they
// destroy, run or send whatever they are pointed at next.
var exactFronts = wordSet(`rm rmdir dd mkfs fdisk parted wipefs shred truncate mv chmod chown chgrp chattr setfacl ln tee install
	kill pkill killall reboot shutdown halt mount umount crontab at batch useradd usermod userdel passwd visudo iptables nft
	curl wget ssh scp sftp rsync nc ncat netcat socat telnet ftp aria2c http https xh
	sudo doas su env xargs parallel eval exec source . command builtin nohup nice time timeout watch setsid strace gdb chroot unshare nsenter
	sh bash zsh dash ksh fish csh tcsh busybox pwsh powershell python python2 python3 node perl ruby php lua osascript awk gawk mawk expect
	psql mysql mongo mongosh redis-cli sqlite3 find`)

// exactSubs are the same for the subcommands of a program.
var exactSubs = wordSet(`docker|run docker|exec docker|rm docker|cp podman|run podman|exec kubectl|exec kubectl|delete kubectl|apply kubectl|cp
	kubectl|run kubectl|drain helm|uninstall terraform|apply terraform|destroy terraform|import tofu|apply tofu|destroy pulumi|up pulumi|destroy
	gh|api gh|secret gh|auth npm|publish npm|exec cargo|publish cargo|install git|clean git|config git|filter-branch aws|iam
	systemctl|stop systemctl|disable systemctl|mask openssl|enc deno|run deno|eval bun|x pnpm|dlx yarn|dlx nix|run`)

func wordSet(text string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(text) {
		out[strings.ReplaceAll(w, "|", " ")] = true
	}
	return out
}

// exact says whether nothing but the command itself may be offered: for what it
// is; or since an option stands among the words that would name it, as in
// "git -C dir push".
func exact(words []string, arity int) bool {
	program := strings.ToLower(path.Base(words[0]))
	if exactFronts[program] || len(words) > 1 && exactSubs[program+" "+strings.ToLower(words[1])] {
		return true
	}
	for _, w := range words[1:min(arity, len(words))] {
		if strings.HasPrefix(w, "-") {
			return true
		}
	}
	return false
}
