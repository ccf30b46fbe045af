#include "program_worker.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>

#include <dtrain/base/cpus.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/machine.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/base/with_hint.hpp>
#include <dtrain/comm/mesh.hpp>
#include <dtrain/external/run_program.hpp>

#include "config/run_spec.hpp"
#include "job/logs/rank_line.hpp"
#include "job/spec/job_client.hpp"

namespace dtrain::job {
namespace {

using external::Ended;

// Ranks wait for each other as long as --comm-timeout says, and while one of them uses its grace.
std::chrono::milliseconds patience_of(const config::LaunchOptions& options) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(options.job.comm_timeout + options.grace +
                                                               options.save_timeout);
}

comm::EndpointOptions endpoint_options(const elastic::WorkerJob& me, const config::LaunchOptions& launch) {
  comm::EndpointOptions options;
  options.bind_address = me.address;
  options.secret = me.token;
  options.operation_deadline = patience_of(launch);
  return options;
}

// What the program printed before is no reason for what happens from here on. A stream that cannot be written has no
// reader.
void tell_agent_of_start(const elastic::WorkerJob& me, const external::RunContext::Start& start) {
  const std::string mark = elastic::program_starts(me) + rank_line(start.generation, start.rank, start.ranks) + '\n';
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
    [[maybe_unused]] const ssize_t written = ::write(stream, mark.data(), mark.size());
  }
}

external::RunContext run_context(const elastic::WorkerJob& me, const external::Program& program, AgentLink& link) {
  return {.host = me.host,
          .slot = me.slot,
          .address = me.address,
          .processors = usable_cpus(),
          .gpus = nvidia_device_count("/dev", std::nullopt),
          .job_folder = me.job_folder,
          .environment = own_environment(),
          .interrupted = [&link] { return link.stop_reason() == stop_reason(SIGINT); },
          .before_start = [&me](const external::RunContext::Start& start) { tell_agent_of_start(me, start); },
          .mark = fmt::format("DTRAIN_PROGRAM={}.{}.", program.job, me.worker)};
}

elastic::Left::How how_of(Ended::How how) {
  switch (how) {
    case Ended::How::done:
      return elastic::Left::How::done;
    case Ended::How::removed:
      return elastic::Left::How::removed;
    case Ended::How::stopped:
      return elastic::Left::How::stopped;
    case Ended::How::failed:
    case Ended::How::stuck:
    case Ended::How::unfit:
      break;
  }
  return elastic::Left::How::failed;
}

// The exit code of the job after this rank; ok: the job may go on.
ExitCode code_of_job(const Ended& ended) {
  if (ended.how == Ended::How::stuck) return ExitCode::no_progress;
  return ended.how == Ended::How::failed ? ExitCode::failed : ExitCode::ok;
}

ExitCode code_of(const Ended& ended) {
  if (ended.how == Ended::How::stuck) return ExitCode::no_progress;
  if (ended.how == Ended::How::failed || ended.how == Ended::How::unfit)
    return static_cast<ExitCode>(ended.end.shell_code());
  return ended.how == Ended::How::stopped ? ExitCode::resumable : ExitCode::ok;
}

}  // namespace

ExitCode run_program_worker(const elastic::WorkerJob& me, const config::ProgramSpec& spec, AgentLink& link) {
  adopt_orphans();
  const external::Program& program = spec.program;
  comm::Endpoint endpoint(endpoint_options(me, spec.options));
  elastic::WorkerSession session(link, endpoint, {.worker = me.worker, .fingerprint = {}});
  link.connect(session);
  try {
    const Ended ended = external::run_program(program, run_context(me, program, link), session);
    session.leave(how_of(ended.how), ended.reason, {.exit_code = static_cast<int>(code_of_job(ended))});
    link.finish();
    return code_of(ended);
  } catch (const Error& error) {  // the hint too: this process's own lines may come too late
    link.fail(session, std::runtime_error(with_hint(error)));
    throw;
  } catch (const std::exception& error) {
    link.fail(session, error);
    throw;
  }
}

}  // namespace dtrain::job
