#include "exit_codes.hpp"

#include <csignal>

#include <dtrain/base/error.hpp>

namespace dtrain::cli {
namespace {

constexpr int number(ExitCode code) { return static_cast<int>(code); }

constexpr ExitCodeMeaning kTable[] = {
    {number(ExitCode::ok), "done"},
    {number(ExitCode::failed), "failed: a problem with data, disk or memory, or a broken run"},
    {number(ExitCode::usage), "wrong usage or configuration; nothing was started"},
    {number(ExitCode::partly_done), "partly done; the output lists the parts that failed"},
    {number(ExitCode::refused), "another machine refused the request or could not be reached"},
    {number(ExitCode::impaired), "a machine of the cluster is impaired; the output names it"},
    {number(ExitCode::resumable), "stopped on request with a checkpoint; --resume continues"},
    {number(ExitCode::no_progress), "no progress; the same command would fail again"},
    {128 + SIGHUP, "ended by SIGHUP (terminal closed) without a checkpoint"},
    {128 + SIGINT, "ended by SIGINT without a checkpoint"},
    {128 + SIGPIPE, "ended by SIGPIPE: the reader of the output is gone; of a training, without a checkpoint"},
    {128 + SIGUSR1, "ended by SIGUSR1, a warning of a scheduler, without a checkpoint"},
    {128 + SIGUSR2, "ended by SIGUSR2, a warning of a scheduler, without a checkpoint"},
    {128 + SIGTERM, "ended by SIGTERM without a checkpoint"},
    {128 + SIGXCPU, "ended by SIGXCPU, a warning of a scheduler, without a checkpoint"},
};

}  // namespace

std::span<const ExitCodeMeaning> exit_code_table() { return kTable; }

}  // namespace dtrain::cli
