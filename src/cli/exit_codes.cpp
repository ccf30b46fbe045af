#include "exit_codes.hpp"

#include <csignal>

#include <dtrain/base/error.hpp>

namespace dtrain::cli {
namespace {

constexpr int number(ExitCode code) { return static_cast<int>(code); }

constexpr ExitCodeMeaning kTable[] = {
    {number(ExitCode::ok), "done"},
    {number(ExitCode::failed), "failed: data, disk, memory or a broken run"},
    {number(ExitCode::usage), "usage or configuration: nothing was started"},
    {number(ExitCode::partly_done), "partly done: which parts is listed"},
    {number(ExitCode::refused), "another machine refused or could not be reached"},
    {number(ExitCode::impaired), "a machine of the cluster is impaired: which one is listed"},
    {number(ExitCode::resumable), "stopped on request with a checkpoint: start again with --resume"},
    {number(ExitCode::no_progress), "no progress: do not start again without a change"},
    {128 + SIGINT, "ended by SIGINT, nothing to resume"},
    {128 + SIGTERM, "ended by SIGTERM, nothing to resume"},
};

}  // namespace

std::span<const ExitCodeMeaning> exit_code_table() { return kTable; }

}  // namespace dtrain::cli
