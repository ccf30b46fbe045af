#include "topics.hpp"

#include <fmt/format.h>

#include <map>

#include <dtrain/base/text.hpp>
#include <dtrain/nn/networks.hpp>

#include "exit_codes.hpp"
#include "help.hpp"

namespace dtrain::cli {
namespace {

constexpr std::string_view kEnvironment =
    R"(Most options are also read from an environment variable: DTRAIN_ and the option's
name in capitals, with _ for -. A flag overrides a variable, and a variable
overrides a configuration file (`dtrain help configuration`). Options that are not
in the list below, such as --now, are read from the command line only. A variable
that resembles that of an option, but belongs to none, causes a warning.

Other variables:
  DTRAIN_CONFIG     as --config; workers on other machines get it with --env
                    only
  DTRAIN_CUDA_PATH  folders, with : between them, where --device cuda looks for
                    CUDA's libraries before all others
  NO_COLOR          if it is not empty, output has no colour
  COLUMNS           width of help texts, from 60 to 120; otherwise the terminal's,
                    or 100 without one
  TERM              dumb turns off colour and the progress bar
  XDG_CONFIG_HOME   folder of dtrain/config.toml (default $HOME/.config)

Variables by which `launch` names files to its ranks:
  DTRAIN_PROGRESS_FILE   the program writes a growing number here, by which
                         --stop-when no-progress knows that it makes progress
  DTRAIN_DEADLINE_FILE   JSON with the time when a rank that was asked to end is
                         killed, in seconds since 1970; made with the request
  DTRAIN_SAVED_FILE      the program writes it after --save-signal, once its state
                         is saved

Variables of options, with the commands that read them:
)";

constexpr std::string_view kConfiguration =
    R"(The value of an option comes from the first of these sources that has one:
  1. a flag                                --lr 0.1
  2. a variable                            DTRAIN_LR=0.1
  3. a variable of a cluster's set-up      DEEPLEARNING_WORKERS_PATH=hosts
  4. the file that --config names          --config lab.toml
  5. the project's file                    ./dtrain.toml
  6. the user's file                       $XDG_CONFIG_HOME/dtrain/config.toml,
                                           by default in $HOME/.config
  7. the recipe                            train --recipe imagenet
  8. the default

Files are TOML, with one table for each command. Keys are the names of long
options without dashes. Before the first table stand the options that all
commands share: json, color, quiet and verbose. Texts stand in quotes, and an
option that takes several values has a list.

  color = "never"
  [train]
  lr = 0.1
  lr-step-epochs = [30, 60]
  [data.prepare]
  out = "d"

An invalid value or an unknown key is an error, which names its file and line; in
the table of another command it is a warning. A table of no command is an error.
Help, --version, `completion` and `stop` only warn, and go on without a file that
they cannot read.
The project's file must not set options that run commands, choose machines, give
rights or lift protection, because it may come with a downloaded folder:
--prepare, -H, --launcher, --ssh-config, --force and others. These belong in
the user's file, in a file that --config names, or on the command line.

`dtrain COMMAND --show-config` prints the source of each value.
)";

constexpr std::string_view kRemoteFiles =
    R"(Commands that take a file also take s3://BUCKET/KEY, and for reading also
https:// and http:// URLs. This holds for --data-train, --data-val,
--model-prefix with --resume and --load-epoch, export --out, data prepare --out
and --from, data cp, data unpack, data import of records, data ls and the
pictures of predict. --data-train also takes s3://BUCKET/PREFIX for PREFIX_0.rec,
PREFIX_1.rec, ..., and a pattern such as s3://BUCKET/d/p_*.rec. Each .rec file
needs its .idx file beside it.

The PREFIX of eval, inspect, export and predict may be s3://BUCKET/PREFIX. Behind
https:// a checkpoint is named by its .json file, https://HOST/m/p-0001.json.
Weights for --pretrained, --finetune and import are named URL#sha256=HEX, with
the 64 digits that `sha256sum` prints; they are downloaded once.

Credentials come from the first of these sources that has some:
  1. in a job's workers: the coordinator, which forwards its own credentials and
     renews them before they expire
  2. AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN
  3. AWS_WEB_IDENTITY_TOKEN_FILE with AWS_ROLE_ARN
  4. the profile (AWS_PROFILE, else "default") in ~/.aws/config and
     ~/.aws/credentials: role_arn with source_profile, credential_source or
     web_identity_token_file; the sign-in of `aws sso login`; keys;
     credential_process
  5. a container's endpoint, or the role of an EC2 instance
Profiles of `aws login` and profiles that need an MFA code are refused; the error
names the command that exports their keys. The region comes from AWS_REGION,
AWS_DEFAULT_REGION, the profile or the instance. AWS_ENDPOINT_URL_S3,
AWS_ENDPOINT_URL or the profile's endpoint_url select a server other than AWS,
which needs no region. AWS_MAX_ATTEMPTS is the number of attempts for a request
(default 5).

Where a proxy or an authority of your own signs the certificates of a server,
AWS_CA_BUNDLE, ca_bundle of the profile, CURL_CA_BUNDLE or SSL_CERT_FILE names
the file of trusted certificates; the first that is set counts. ca_bundle counts
for AWS and s3:// alone, not for http(s):// URLs. The variables https_proxy,
http_proxy and no_proxy have their usual meaning.

An object is pinned to its ETag when it is opened. If the object is replaced
while a run reads it, the run ends with an error that names both ETags. All
workers of a job read the version that existed when the job started.

Blocks of 1 MiB are cached in --cache-dir, up to --cache-size; processes share
this cache. The blocks that come next in the epoch's order are fetched ahead. An
object larger than half of the cache is read without the cache, record by
record. With --shuffle-block N the order is random only between blocks of N
records, and the records of each 16 consecutive blocks are mixed, so that the
cache also serves large objects. How well this mixes depends on the file. The
table shows the variance of the classes in batches of 128, as a multiple of the
variance of a fully random order, for 51,200 records of 10 classes:
                          all records   --shuffle-block 128   512   2048
  file in random order    1.0           1.0                   1.0   1.0
  file sorted by class    1.0           9.1                   6.8   5.3
Use --shuffle when packing files that are to be read in blocks.

An upload is atomic: the object appears complete or not at all. The next upload
to the same key reuses or removes the parts that a killed `data cp` or checkpoint
left behind. The bucket rule "abort incomplete multipart uploads" also removes
them.
)";

constexpr std::string_view kLaunchers =
    R"(With every launcher, one agent runs on each host. It starts the host's workers,
writes their logs to the job folder and ends them. All hosts need access to the
job folder, and the same dtrain at the same path; over ssh a dtrain bundle is
copied to hosts that lack it.

  local   Agents are processes on this machine. Every host of the job is a name
          for one of them.
  ssh     dtrain logs in to the hosts of -H. After an agent has joined, the job
          no longer depends on the connection.
  agents  For the nodes of a cluster that dtrain made. On each node a waiting
          process starts the agent when the cluster's head requests it; nodes
          cannot log in to each other. Hosts are all registered nodes, or those
          of -H, by address or name.
  mpi     One mpirun (Open MPI, MPICH or Intel MPI) per host starts its agent
          and runs as long as the agent does. Hosts are those of -H, else those
          of the batch job of Slurm, Grid Engine, PBS or LSF. mpirun logs in by
          its own means, configured by OMPI_MCA_* and HYDRA_* variables.
          Training itself needs no MPI.
  slurm   Inside a job (salloc, sbatch): one `srun --overlap` for each of the
          job's hosts; with --ntasks or --ntasks-per-node, tasks are slots.
          Elsewhere: the command runs itself again by `salloc -N`, with whole
          hosts and all their memory. Time, account and GPUs come from salloc's
          SALLOC_* variables, such as SALLOC_TIMELIMIT.
  sge     Inside a job with a parallel environment: one `qrsh -inherit` for each
          other host, with the job's slots. Elsewhere: the command runs itself
          again by `qrsh -pe NAME N`, on a host that Grid Engine chooses.
  yarn    One application for each agent, through the ResourceManager's REST
          API: Hadoop's DistributedShell runs the agent in a container. The job
          folder must be the same on all nodes. Tested with a simulated YARN
          only.
  folder  On machines where `dtrain hosts join` waits in the job folder. The job
          begins when -n of them wait; later ones join an elastic job by
          themselves, and one that gets SIGTERM leaves at the next step. The
          coordinator logs in nowhere. With --resume, the command follows a job
          that runs in the folder already.
  kubernetes
          In pods, by kubectl: a Job coordinates, and `dtrain hosts join` runs in
          the pods of a StatefulSet. All mount one claim at /work, and paths are
          those in the pods. The command shows the log, returns the exit code and
          deletes the pods; with --detach it returns at once. `kubectl scale`
          changes the number of workers of an elastic job. --kube-print prints
          the manifests. Tested with a simulated cluster only.

Ctrl-C, SIGTERM and SIGHUP stop a job as `dtrain stop` does, wherever its
coordinator runs; a second signal ends it at once. `train` exits with 75 once a
checkpoint is saved, else with 128 and the number of the signal. Programs of `launch`
save by themselves: it exits with 130, 143 or 129 after a signal, and with 75 after
`dtrain stop`. A reader of the output that goes away (`| head`) stops a job, too. So
do the warnings of a scheduler, SIGUSR1, SIGUSR2 and SIGXCPU (`qsub -notify`, s_rt,
s_cpu, `sbatch --signal=USR2@120`), however often they come. A host whose starter
receives a request to end (scancel, a warning, `qdel` of a job that was submitted with
`qsub -notify`) leaves the job at its next step. An elastic job outlives its coordinator
with local, ssh, agents, folder and kubernetes, and with mpi and -H. On hosts that a
scheduler granted, all processes end when the coordinator does, because the scheduler
takes the hosts back.
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
  constexpr std::size_t kVariableColumn = 34;
  std::string text(kEnvironment);
  for (const auto& [variable, commands] : readers) text += two_columns(variable, join(commands, ", "), kVariableColumn);
  return text;
}

constexpr std::string_view kMxnet =
    R"(`dtrain train` takes all options of MXNet's image-classification scripts
(common/fit.py, common/data.py) and of launch.py by their names. They mean the
same and have the same defaults, except those below, which are refused with the
reason and the nearest thing that dtrain has.

)";

std::string mxnet_topic(const CommandTree& tree) {
  std::string text(kMxnet);
  for (const config::Option& option : tree.find("train")->options.options()) {
    for (const config::Refusal& refusal : option.refusals) {
      const std::string value = refusal.text.empty() ? option.value : refusal.text;
      text += fmt::format("  {} {}\n      {}\n      {}\n", option.shown_name(), value, refusal.reason, refusal.hint);
    }
  }
  return text;
}

constexpr std::string_view kNetworks =
    R"(--network takes one of these names, or a file: a .json with an MXNet symbol or a graph
as `dtrain inspect PREFIX --graph` prints it, or an .onnx model. --num-layers chooses
among the depths of resnet, resnet-v1, resnet-v1.5 and vgg.

)";

constexpr std::string_view kDetectors =
    R"(
These are detectors. They learn from records with boxes (`dtrain data pack --coco`), take a
network below their feature pyramid by --backbone, and are torchvision's layer by layer.
retinanet looks once; faster-rcnn looks again into the regions that it proposes
(--proposals); mask-rcnn also finds each object's mask, and learns from records with masks.
Their anchors begin at 32 pixels of the image; for objects much smaller give --anchor-size 16 or 8.

)";

constexpr std::string_view kTorchNetworks =
    R"(
These are torchvision's, those with squeeze-and-excitation and vit_*_patch16_224 timm's:
with the same layers and names of tensors, so that their weights fit (--pretrained,
`dtrain import`). The images are those that weights for ImageNet expect; they are
prepared so unless you choose otherwise.

)";

std::string networks_topic() {
  std::string text(kNetworks);
  for (const std::string& name : nn::own_network_names()) text += fmt::format("  {}\n", name);
  text += kDetectors;
  for (const std::string& name : nn::detector_names()) text += fmt::format("  {}\n", name);
  text += kTorchNetworks;
  for (const std::string& name : nn::torch_network_names()) {
    const nn::PretrainedImages images = nn::pretrained_images(name);
    text += fmt::format("  {:<23}{} pixels, from {}{}\n", name, images.size, images.resize,
                        images.symmetric ? "; values from -1 to 1" : "");
  }
  return text;
}

}  // namespace

std::vector<std::string> topic_names() {
  return {"exit-codes", "environment", "configuration", "networks", "remote-files", "launchers", "mxnet"};
}

std::string exit_codes_topic() {
  std::string text;
  for (const ExitCodeMeaning& row : exit_code_table()) text += fmt::format("  {:>3}  {}\n", row.code, row.meaning);
  return text + fmt::format("  {:>3}  {}\n", "any", kCodeOfLaunch);
}

std::optional<std::string> topic_text(const CommandTree& tree, std::string_view name) {
  if (name == "exit-codes") return exit_codes_topic();
  if (name == "environment") return environment_topic(tree);
  if (name == "configuration") return std::string(kConfiguration);
  if (name == "networks") return networks_topic();
  if (name == "remote-files") return std::string(kRemoteFiles);
  if (name == "launchers") return std::string(kLaunchers);
  if (name == "mxnet") return mxnet_topic(tree);
  return std::nullopt;
}

}  // namespace dtrain::cli
