#include "starter_command.hpp"

#include <fmt/format.h>

#include <dtrain/launcher/allocation.hpp>

#include <array>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::launcher {
namespace {

using Words = std::vector<std::string>;

// The agent may use all processors: it is one task, but it starts a worker for each slot.
Words open_mpi(const StarterCall& call, const std::string& host) {
  Words words = {call.program.string(), "--host", host, "-np", "1", "--bind-to", "none"};
  if (call.as_root) words.emplace_back("--allow-run-as-root");
  return words;
}

Words hydra(const StarterCall& call, const std::string& host) {
  return {call.program.string(), "-hosts", host, "-n", "1"};
}

// --overlap: the step shares the node with the step of the coordinator. --export: needed where a batch script was
// submitted without an environment. --immediate: a busy node is an error, not a wait. --gpus: without it the step asks
// this one node for what the job asked for on all nodes, or for a single task.
Words srun(const StarterCall& call, const std::string& host) {
  Words words = {call.program.string(),
                 "--overlap",
                 "--nodes=1",
                 "--ntasks=1",
                 "--nodelist=" + host,
                 "--cpu-bind=none",
                 "--mpi=none",
                 "--input=none",
                 "--kill-on-bad-exit=0",
                 "--export=ALL",
                 "--immediate=30",
                 "--job-name=dtrain-agent",
                 "--quiet"};
  if (call.gpus > 0) words.push_back(fmt::format("--gpus={}", call.gpus));
  return words;
}

// On the coordinator's own host no starter is needed, and there may be no slot left for one.
Words qrsh(const StarterCall& call, const std::string& host) {
  if (short_name(host) == short_name(call.own_host)) return {};
  return {call.program.string(), "-inherit", "-nostdin", "-noshell", host};
}

}  // namespace

std::vector<std::string> starter_command(const StarterCall& call, const elastic::HostLine& host,
                                         const std::vector<std::string>& agent) {
  if (!host.user.empty() || host.port != 0) {
    throw UsageError(fmt::format("{}: {} logs in by itself, so a user or a port means nothing", host.name,
                                 call.program.filename().string()),
                     "give the host's name alone, with slots=n for several workers");
  }
  Words words;
  switch (call.starter) {
    case ProcessStarter::open_mpi:
      words = open_mpi(call, host.host);
      break;
    case ProcessStarter::hydra:
      words = hydra(call, host.host);
      break;
    case ProcessStarter::srun:
      words = srun(call, host.host);
      break;
    case ProcessStarter::qrsh:
      words = qrsh(call, host.host);
      break;
  }
  words.insert(words.end(), agent.begin(), agent.end());
  return words;
}

ProcessStarter kind_of_mpirun(std::string_view version) {
  if (version.find("Open MPI") != version.npos || version.find("OpenRTE") != version.npos)
    return ProcessStarter::open_mpi;
  for (const std::string_view kin : {"HYDRA", "Hydra", "Intel(R) MPI", "MVAPICH"}) {
    if (version.find(kin) != version.npos) return ProcessStarter::hydra;
  }
  const std::string first(trim(version.substr(0, version.find('\n'))));
  throw UsageError(fmt::format("mpirun is neither Open MPI's nor MPICH's: it says '{}'", first),
                   "put the folder of one of them first in PATH, or use --launcher ssh");
}

}  // namespace dtrain::launcher
