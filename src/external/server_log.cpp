#include "server_log.hpp"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <system_error>

#include <dtrain/base/thread_error.hpp>

namespace dtrain::external {
namespace {

constexpr int kEndLookMs = 50;  // at whether this object ends

}  // namespace

ServerLog::ServerLog(const Path& file) try
    : file_(file), pipe_(make_pipe()), thread_([this](const std::stop_token& over) { read(over); }) {
} catch (const std::system_error& error) {
  throw no_thread("that logs the output of a server", error);
}

ServerLog::~ServerLog() {
  started();
  thread_ = {};  // asks it to stop and waits for it
}

// A process that escaped its end may write for ever.
void ServerLog::read(const std::stop_token& over) {
  char chunk[kPipeChunk];
  for (int last_chunks = 0; last_chunks < kFullPipe;) {
    const bool is_over = over.stop_requested();
    if (!is_readable(pipe_.read_end, is_over ? 0 : kEndLookMs)) {
      if (is_over) break;
      continue;
    }
    const ssize_t got = ::read(pipe_.read_end.get(), chunk, sizeof chunk);
    if (got == 0 || (got < 0 && errno != EINTR)) break;
    if (is_over) ++last_chunks;
    const std::string_view bytes(chunk, static_cast<std::size_t>(got < 0 ? 0 : got));
    file_.append(lines_.add(bytes, std::chrono::steady_clock::now()));
  }
  file_.append(lines_.end());
}

}  // namespace dtrain::external
