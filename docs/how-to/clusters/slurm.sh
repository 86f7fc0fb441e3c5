#!/bin/sh
# A study as a Slurm job array, one shard a task. FOLDER is on a file system that all nodes share.
#
#     id=$(sbatch --parsable --array=1-16 slurm.sh SCENARIO FOLDER 16)
#     sbatch --dependency="afterok:$id" --wrap "ropewalk merge FOLDER/shards/* --out FOLDER/results"
#
# A task that failed or was preempted goes on where it was: sbatch --array=3,7 slurm.sh SCENARIO FOLDER 16
# What follows the number of shards are options of `ropewalk run`, such as --set.
#SBATCH --job-name=ropewalk
#SBATCH --cpus-per-task=2
#SBATCH --requeue
set -eu
scenario=$1 folder=$2 shards=$3
shift 3
exec ropewalk run "$scenario" --quiet --jobs "${SLURM_CPUS_PER_TASK:-1}" \
    --shard "$SLURM_ARRAY_TASK_ID/$shards" --out "$folder/shards/$SLURM_ARRAY_TASK_ID" "$@"
