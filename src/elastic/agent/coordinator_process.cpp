#include "coordinator_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::elastic {
namespace {

// Holds the text, which may be larger than a pipe, where no other process can see it.
FileDescriptor memory_with(const std::string& text) {
  FileDescriptor memory(::memfd_create("dtrain order", MFD_CLOEXEC));
  if (!memory) throw Error(fmt::format("cannot hold an order: {}", std::strerror(errno)));
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = ::write(memory.get(), text.data() + done, text.size() - done);
    if (written < 0 && errno != EINTR) throw Error(fmt::format("cannot hold an order: {}", std::strerror(errno)));
    if (written > 0) done += static_cast<std::size_t>(written);
  }
  ::lseek(memory.get(), 0, SEEK_SET);
  return memory;
}

// The job goes on without the log where that cannot be written.
FileDescriptor open_log(const Path& job_folder) {
  const Path path = job_folder / "logs" / "coordinator.log";
  FileDescriptor log(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  return log ? std::move(log) : FileDescriptor(::open("/dev/null", O_WRONLY | O_CLOEXEC));
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
    if (const auto tell = std::exchange(on_port, nullptr)) {
      tell(port && *port > 0 && *port < 65536 ? static_cast<std::uint16_t>(*port) : 0);
    }
    return false;
  }
};

CoordinatorProcess::CoordinatorProcess(net::Loop& loop, const std::vector<std::string>& command,
                                       std::vector<std::string> environment, const Path& folder,
                                       const CoordinatorOrder& order, std::function<void(std::uint16_t)> on_port)
    : answer_(std::make_shared<Answer>()) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw Error(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  answer_->pipe = FileDescriptor(ends[0]);
  const FileDescriptor write_end(ends[1]);
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  answer_->on_port = std::move(on_port);
  const FileDescriptor input = memory_with(to_json(order).dump()), log = open_log(order.job_folder);
  Spawn child = spawn_of(command);
  child.environment = std::move(environment);
  child.folder = folder;
  child.input = input.get();
  child.output = write_end.get();
  child.error = log.get();
  child.group = Spawn::Group::session;
  spawn(child);  // this process reaps whatever ends
  loop.when_readable(answer_->pipe.get(), [answer = answer_] { return answer->read_more(); });
}

CoordinatorProcess::~CoordinatorProcess() { answer_->on_port = nullptr; }

}  // namespace dtrain::elastic
