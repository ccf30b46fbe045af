#include "topics.hpp"

#include <fmt/format.h>

#include <map>

#include "exit_codes.hpp"

namespace dtrain::cli {
namespace {

constexpr std::string_view kEnvironment =
    R"(Every option of every command is also read from a variable: DTRAIN_ and the option's name in capitals, with _ for -.
A flag wins over a variable, a variable over a file (`dtrain help configuration`).

Others that are read:
  NO_COLOR          not empty: no colour
  TERM              dumb: neither colour nor a progress bar
  XDG_CONFIG_HOME   folder of dtrain/config.toml; without it $HOME/.config

Variables of the options, with the commands that read them:
)";

constexpr std::string_view kConfiguration =
    R"(A value comes from the first of these that has one:
  1. a flag                                      --lr 0.1
  2. a variable                                  DTRAIN_LR=0.1
  3. a variable of a cluster's set-up            DEEPLEARNING_WORKERS_PATH=hosts
  4. ./dtrain.toml                               the project's
  5. $XDG_CONFIG_HOME/dtrain/config.toml         the user's; $HOME/.config where XDG_CONFIG_HOME is not set
  6. the recipe                                  train --recipe imagenet
  7. the default

A file holds `key = value` lines, a section for each command, and # comments. Keys are long options without dashes;
keys before the first section are options of every command. Values with blanks or commas stand in quotes.

  color = "never"
  [train]
  lr = 0.1
  lr-step-epochs = "30,60"
  [data.prepare]
  out = "d"

A bad value or an unknown key is refused with its place. `dtrain COMMAND --show-config` prints where each value came from.
)";

constexpr std::string_view kFarFiles =
    R"(Where a command takes a file it also takes s3://BUCKET/KEY, and for reading https:// and http://: --data-train, --data-val,
--model-prefix with --resume and --load-epoch, export --out, data prepare --out and --from, data cp, data unpack, data ls.
--data-train also takes s3://BUCKET/PREFIX for PREFIX_0.rec, PREFIX_1.rec, ..., and a pattern: s3://BUCKET/d/p_*.rec. Each
.rec needs its .idx beside it.

Credentials come from the first of these that has some:
  1. in a job's workers: the coordinator, which hands its own to them, again before they expire
  2. AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN
  3. AWS_WEB_IDENTITY_TOKEN_FILE with AWS_ROLE_ARN
  4. the profile (AWS_PROFILE, else "default") in ~/.aws/config and ~/.aws/credentials: role_arn with source_profile,
     credential_source or web_identity_token_file; the sign-in of `aws sso login`; keys; credential_process
  5. a container's endpoint, the role of an EC2 instance
Profiles of `aws login`, and those that ask for a code, are refused with the command that exports their keys.
The region: AWS_REGION, AWS_DEFAULT_REGION, the profile, the instance. Another server than AWS, which needs none:
AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, endpoint_url of the profile. Tries of a request: AWS_MAX_ATTEMPTS (5).

An object is pinned to its ETag when it is opened: one that is replaced while a run reads it ends the run with both ETags.
A job's workers all read the version that its start saw.

Blocks of 1 MiB are kept in --cache-dir, at most --cache-size of them; several processes share them. Those that come next in
the epoch's order are fetched ahead. An object larger than half of the cache is read without it, record by record: with
--shuffle-block N only runs of N records are brought into a random order, and the records of each 16 runs that follow one
another are mixed, so the cache serves such an object too. How well that mixes depends on the file. The variance of the
classes in batches of 128, as a multiple of what chance gives, over 51,200 records of 10 classes:
                          all records   --shuffle-block 128   512   2048
  file in random order    1.0           1.0                   1.0   1.0
  file sorted by class    1.0           9.1                   6.8   5.3
So pack with --shuffle what is to be read in blocks.

A file that is sent is there whole or not at all. What a killed `data cp` or checkpoint leaves behind in parts is used, or
removed, by the next upload to the same key; a bucket's rule "abort incomplete multipart uploads" removes it without one.
)";

constexpr std::string_view kLaunchers =
    R"(Whatever starts it, one agent runs on each host: it starts the host's workers, keeps their logs in the job folder and ends
them. All hosts see the job folder, and except over ssh, which copies a bundle, the same dtrain at the same path.

  local   agents are processes of this machine; every host of the job is a name for one of them
  ssh     dtrain itself logs in to the hosts of -H; once an agent joined, nothing depends on that connection
  agents  on a node of a cluster that dtrain made: a process that waits on each node starts the agent, told so by the cluster's
          head. No node can log in to another. Hosts are all registered nodes, or those of -H, by address or by name
  mpi     one mpirun (Open MPI, MPICH, Intel MPI) for each host brings its agent there and stays as long as it does. Hosts are
          those of -H, else of the job of Slurm, Grid Engine, PBS or LSF that this is in. mpirun logs in by its own means,
          as OMPI_MCA_* and HYDRA_* variables say. No MPI is needed to train
  slurm   in a job (salloc, sbatch): the job's hosts, one `srun --overlap` for each; with --ntasks or --ntasks-per-node given,
          tasks are slots. Elsewhere: the command runs itself again by `salloc -N`, with whole hosts and their memory; time,
          account and GPUs come from salloc's SALLOC_* variables, as SALLOC_TIMELIMIT
  sge     in a job with a parallel environment: its hosts and slots, one `qrsh -inherit` for each other host. Elsewhere: the
          command runs itself again by `qrsh -pe NAME N`, on a host that Grid Engine chooses
  yarn    one application for each agent, by the ResourceManager's REST API: Hadoop's DistributedShell runs the agent in a
          container. The job folder is the same on all nodes. Tested against a stand-in only, never with a real YARN

Ctrl-C and SIGTERM end a job as `dtrain stop` does, wherever its coordinator runs; a second one at once. A host whose starter
is told to end (scancel, qdel, a time limit with a warning) leaves the job at its next step. Over ssh, by agents, and by mpi with -H,
an elastic job outlives its coordinator; hosts that a scheduler granted are the scheduler's again when the coordinator is
gone, so there all processes end with it.
)";

std::string environment_topic(const CommandTree& tree) {
  std::map<std::string, std::vector<std::string>> readers;
  const auto collect = [&](const config::OptionSet& set, const std::string& who) {
    for (const config::Option& option : set.options()) {
      if (!option.flag_only) readers[option.variable()].push_back(who);
      if (!option.legacy_variable.empty()) readers[option.legacy_variable].push_back(who);
    }
  };
  collect(tree.global_options, "every command");
  for (const auto& command : tree.commands) collect(command->options, command->path);
  std::string text(kEnvironment);
  for (const auto& [variable, commands] : readers)
    text += fmt::format("  {:<32}{}\n", variable, fmt::join(commands, ", "));
  return text;
}

}  // namespace

std::vector<std::string> topic_names() {
  return {"exit-codes", "environment", "configuration", "far-files", "launchers"};
}

std::string exit_codes_topic() {
  std::string text;
  for (const ExitCodeMeaning& row : exit_code_table()) text += fmt::format("  {:>3}  {}\n", row.code, row.meaning);
  return text;
}

std::optional<std::string> topic_text(const CommandTree& tree, std::string_view name) {
  if (name == "exit-codes") return exit_codes_topic();
  if (name == "environment") return environment_topic(tree);
  if (name == "configuration") return std::string(kConfiguration);
  if (name == "far-files") return std::string(kFarFiles);
  if (name == "launchers") return std::string(kLaunchers);
  return std::nullopt;
}

}  // namespace dtrain::cli
