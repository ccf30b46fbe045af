#include "worker.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include <dtrain/backend/accelerator.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/machine.hpp>
#include <dtrain/base/numa.hpp>
#include <dtrain/base/open_files.hpp>
#include <dtrain/base/reporter.hpp>
#include <dtrain/base/stack_dump.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/comm/mesh.hpp>
#include <dtrain/elastic/agent.hpp>
#include <dtrain/net/addresses.hpp>
#include <dtrain/train/report_json.hpp>

#include "agent_link.hpp"
#include "config/exchange/transport_choice.hpp"
#include "config/gpu/gpu_choice.hpp"
#include "job/report/train_events.hpp"
#include "job/report/train_log.hpp"
#include "job/spec/data_facts.hpp"
#include "job/spec/fingerprint.hpp"
#include "job/spec/job_folder.hpp"
#include "job/spec/shared_folders.hpp"
#include "job/spec/train_run.hpp"
#include "logging_membership.hpp"
#include "program_worker.hpp"
#include "start_finder.hpp"

namespace dtrain::job {
namespace {

// NCCL otherwise listens on the first network card that it finds.
void keep_nccl_to_the_card_of(const std::string& address) {
  const std::string card = net::card_of(address);
  if (!card.empty()) ::setenv("NCCL_SOCKET_IFNAME", fmt::format("={}", card).c_str(), 0);
}

comm::EndpointOptions endpoint_options(const elastic::WorkerJob& me, const config::TrainOptions& run) {
  const config::JobOptions& job = run.job;
  comm::EndpointOptions options;
  options.bind_address = me.address;
  options.secret = me.token;
  options.transport = job.transport;
  options.plain_data = job.plain_data;
  options.connections = job.connections > 0 ? job.connections : is_on_ec2() ? config::kConnectionsOnEc2 : 1;
  if (options.transport == comm::Transport::nccl) {
    keep_nccl_to_the_card_of(me.address);
    options.nccl.library = config::found_nccl(backend::look_for_cuda()).file;
    options.nccl.device = backend::open_accelerator(config::gpu_of_slot(run.compute, me.slot).value());
    options.nccl.any_order = !run.compute.cuda.deterministic;
  }
  options.operation_deadline = std::chrono::duration_cast<std::chrono::milliseconds>(job.comm_timeout);
  return options;
}

train::TrainerOptions worker_options(const TrainRun& run, const elastic::WorkerJob& me) {
  train::TrainerOptions options = config::trainer_options(run.options, run.dtype);
  options.store = run.remote.store;
  options.warm_up = true;
  const config::JobOptions& job = run.options.job;
  options.same_bits = has_same_bits(run);
  if (job.is_by_servers()) {
    options.servers.address = me.address;
    options.servers.secret = me.token;
    options.servers.backend = run.backend.get();
  }
  if (job.sample_ledger) {
    options.ledger = {JobFolder{me.job_folder}.ledger(), fmt::format("{}-{}", me.host, me.worker)};
  }
  return options;
}

// Opens what the run needs beyond its document: credentials, remote files, the start. Before all others, the folder of
// the checkpoints: a member without it could be rank 0, and what that saves would be lost.
void open_run(TrainRun& run, const config::TrainSpec& spec, AgentLink& link, StartFinder& start, Reporter& reporter) {
  require_shared_prefix(spec);
  if (uses_s3(run) && !link.wait_for_credentials()) {
    reporter.warn("the coordinator sent no AWS credentials in time: using those of this host");
  }
  check_far_facts(spec.data, *run.remote.store);
  start.find();
}

elastic::Left::How how_of(train::TrainResult::Ended ended) {
  switch (ended) {
    case train::TrainResult::Ended::done:
      return elastic::Left::How::done;
    case train::TrainResult::Ended::removed:
      return elastic::Left::How::removed;
    case train::TrainResult::Ended::stopped:
      break;
  }
  return elastic::Left::How::stopped;
}

// In a long wait for data a worker still reports, and neither a stop nor the others wait for it. The others stand still
// meanwhile, so the patience is less than where a process is alone: a host that alone reaches no server is to leave.
DataWait wait_as_member(elastic::Membership& membership, AgentLink& link) {
  return {std::chrono::minutes(1), [&](elastic::Phase phase) {
            membership.progress(phase);
            membership.require_generation();
            if (!link.stop_reason().empty()) throw PeerLost("the job stops, and the server of the data is away");
          }};
}

train::TrainResult train_in(const TrainRun& run, elastic::Membership& membership, const train::TrainerOptions& options,
                            const DataWait& wait, Reporter& reporter) {
  const auto training = training_loader(run, wait);
  const auto validation = validation_loader(run, wait);
  const auto executable = compile(run);
  train::ReportForwarder forwarder(membership);
  Observers observers;
  observers.add(forwarder);
  TensorLog tensors(reporter, run.options.monitor, run.graph, *executable);
  if (run.options.monitor > 0) observers.add(tensors);
  train::TrainResult result = train::train(run.graph, *executable, *training, validation.get(), membership, options,
                                           run.start ? &*run.start : nullptr, observers);
  for (const data::Loader* loader : {training.get(), validation.get()}) {
    if (loader && loader->bad_records() > 0) observers.on_warning(loader->bad_records_warning());
  }
  return result;
}

// Called before the first thread that computes or loads is made. If workers with this number of threads can be spread
// evenly over the NUMA nodes of this machine, pins the process to one node. The result holds the slot against other
// workers until it is closed.
FileDescriptor pin_to_numa_node(int threads, Reporter& reporter) {
  const std::vector<std::vector<int>> nodes = numa_nodes();
  if (nodes.size() == 1) return {};
  MachineSlot slot = take_machine_slot();
  const std::vector<int> cpus = cpus_of_worker(nodes, slot.number, threads);
  if (cpus.empty()) return {};
  keep_to_cpus(cpus);
  reporter.note(fmt::format("uses the {} processors of one NUMA node, from {}", cpus.size(), cpus.front()));
  return std::move(slot.held);
}

}  // namespace

ExitCode run_worker(Reporter& reporter) {
  dump_stacks_on_signal();
  watch_stop_signals();
  raise_open_files();  // two connections to each other rank while one generation follows another
  AgentLink link{FileDescriptor(elastic::kWorkerSocket)};
  const elastic::WorkerJob me = elastic::worker_job_from_json(link.assignment());
  const config::RunSpec spec = config::run_spec_from_json(me.document);
  enter_folder(spec);
  if (const auto* program = std::get_if<config::ProgramSpec>(&spec.work)) return run_program_worker(me, *program, link);
  const auto& training = std::get<config::TrainSpec>(spec.work);
  TrainRun run = run_of(training, me.slot);
  run.remote = remote_of_run(reporter, link.delegated());
  train::TrainerOptions options = worker_options(run, me);
  const std::optional<int> gpu = config::gpu_of_slot(run.options.compute, me.slot);
  reporter.note(fmt::format("worker {} on {}, process {}, {}{}", me.worker, me.host, ::getpid(),
                            gpu ? fmt::format("GPU {}, ", *gpu) : "",
                            count_text(run.options.compute.threads, "thread")));
  const FileDescriptor slot = pin_to_numa_node(run.options.compute.threads, reporter);

  comm::Endpoint endpoint(endpoint_options(me, run.options));
  elastic::WorkerSession session(link, endpoint, {.worker = me.worker, .fingerprint = fingerprint_of(run)});
  link.connect(session);
  LoggingMembership membership(session, run.options.job.has_own_batches() ? 0 : options.logical_shards, reporter);
  try {
    membership.progress(elastic::Phase::building);
    StartFinder start(run, JobFolder{me.job_folder}, reporter);
    open_run(run, training, link, start, reporter);
    options.lost_start = run.lost_start;
    options.find_start = [&start] { return start.find_again(); };
    const train::TrainResult result = train_in(run, membership, options, wait_as_member(membership, link), reporter);
    session.leave(how_of(result.ended), result.reason);
    link.finish();
    reporter.note(fmt::format("left at epoch {} step {}{}{}", result.cursor.epoch, result.cursor.step,
                              result.reason.empty() ? "" : ": ", result.reason));
    return result.ended == train::TrainResult::Ended::stopped ? ExitCode::resumable : ExitCode::ok;
  } catch (const train::Diverged& error) {
    link.fail(session, error, options.same_bits ? ExitCode::no_progress : ExitCode::ok);
    throw;
  } catch (const std::exception& error) {
    link.fail(session, error);
    throw;
  }
}

}  // namespace dtrain::job
