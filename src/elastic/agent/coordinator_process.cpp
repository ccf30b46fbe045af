#include "coordinator_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/pipe.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/elastic/job_files.hpp>

namespace dtrain::elastic {
namespace {

// A coordinator there would end at once, and could not say why in its log.
void require_writable(const Path& job_folder) {
  if (::access(job_folder.c_str(), W_OK) == 0) return;
  throw Error(fmt::format("no coordinator can be started here: {} cannot be written: {}", job_folder.string(),
                          std::strerror(errno)),
              "mount it with write access; until then, coordinators run on other hosts");
}

// The job goes on without the log where that cannot be written.
FileDescriptor coordinator_log(const Path& job_folder) {
  try {
    return open_log(job_folder / job_file::kLogs / job_file::kCoordinatorLog);
  } catch (const Error&) {
    return open_log("/dev/null");
  }
}

}  // namespace

struct CoordinatorProcess::Answer {
  FileDescriptor pipe;
  std::string text;
  std::function<void(std::uint16_t)> on_port;

  bool read_more() {
    char chunk[256];
    const ssize_t got = ::read(pipe.get(), chunk, sizeof chunk);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return on_port != nullptr;
    if (got > 0) text.append(chunk, static_cast<std::size_t>(got));
    const auto end = text.find('\n');
    if (got > 0 && end == text.npos) return on_port != nullptr;
    const auto port = parse_integer(text.substr(0, end));
    if (const auto callback = std::exchange(on_port, nullptr)) {
      callback(port && *port > 0 && *port < 65536 ? static_cast<std::uint16_t>(*port) : 0);
    }
    return false;
  }
};

CoordinatorProcess::CoordinatorProcess(net::Loop& loop, const std::vector<std::string>& command,
                                       std::vector<std::string> environment, const Path& folder,
                                       const CoordinatorOrder& order, std::function<void(std::uint16_t)> on_port)
    : answer_(std::make_shared<Answer>()) {
  require_writable(order.job_folder);
  Pipe output = make_pipe();
  answer_->pipe = std::move(output.read_end);
  ::fcntl(answer_->pipe.get(), F_SETFL, O_NONBLOCK);
  answer_->on_port = std::move(on_port);
  const FileDescriptor input = memory_file(to_json(order).dump()), log = coordinator_log(order.job_folder);
  Spawn child = spawn_of(command);
  child.environment = std::move(environment);
  child.folder = folder;
  child.input = input.get();
  child.output = output.write_end.get();
  child.error = log.get();
  child.group = Spawn::Group::session;
  spawn(child);  // the agent reaps all of its children
  loop.when_readable(answer_->pipe.get(), [answer = answer_] { return answer->read_more(); });
}

CoordinatorProcess::~CoordinatorProcess() { answer_->on_port = nullptr; }

}  // namespace dtrain::elastic
