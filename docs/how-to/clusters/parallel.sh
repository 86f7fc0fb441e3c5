#!/bin/sh
# A study on several hosts by GNU parallel (20221122), one shard a job, two jobs a host.
#
#     ./parallel.sh SCENARIO FOLDER SHARDS [HOSTS]
#
# HOSTS are as for `parallel --sshlogin`: `a,b,:` are hosts a and b by ssh and this one (`:`, the default). All of them have
# SCENARIO and FOLDER at the same place (a shared file system), and `ropewalk` on their PATH. Called again, it goes on where it
# was: finished jobs are in FOLDER/joblog, unfinished shards are resumed.
set -eu
scenario=$1 folder=$2 shards=$3 hosts=${4:-:}
mkdir -p "$folder/shards"
seq "$shards" | parallel --sshlogin "$hosts" --jobs 2 --workdir . --joblog "$folder/joblog" --resume-failed --retries 3 \
    ropewalk run "$scenario" --quiet --jobs 1 --shard "{}/$shards" --out "$folder/shards/{}"
seq "$shards" | sed "s|^|$folder/shards/|" | xargs ropewalk merge --out "$folder/results"
