#include <dtrain/train/tensorboard.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include <dtrain/base/error.hpp>

#include "export/protobuf.hpp"
#include "tensorboard_frame.hpp"

namespace dtrain::train {
namespace {

constexpr std::size_t kBufferSize = 64 << 10;

// Field numbers of tensorflow/core/util/event.proto and tensorflow/core/framework/summary.proto.
enum Event { wall_time = 1, step = 2, file_version = 3, summary = 5 };
enum Summary { value = 1 };
enum Value { tag = 1, simple_value = 2, image = 4 };
enum Picture { height = 1, width = 2, colorspace = 3, encoded = 4 };

double wall_time_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

[[noreturn]] void fail(std::string_view action, const Path& path, int error) {
  throw Error(fmt::format("{}: cannot {}: {}", path.string(), action, std::strerror(error)),
              "choose another folder with setting 'tensorboard', or train without it");
}

// TensorBoard takes every file with "tfevents" in its name and reads them in the order of the names. The last number
// tells apart the writers that one process opens within a second.
Path event_path(const Path& folder, int number) {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  return folder / fmt::format("events.out.tfevents.{:010}.{}.{}.{}", static_cast<std::int64_t>(wall_time_now()),
                              host[0] ? host.data() : "localhost", ::getpid(), number);
}

}  // namespace

struct EventWriter::State {
  Path path;
  FileDescriptor fd;
  std::string buffer;  // frames not yet written

  void open(const Path& folder) {
    int number = 0;
    do {
      path = event_path(folder, number++);
      fd = FileDescriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666));
    } while (!fd && errno == EEXIST);
    if (!fd) fail("create", path, errno);
  }

  void add(const ProtoMessage& event) {
    buffer += tensorboard_frame(event.bytes());
    if (buffer.size() >= kBufferSize) flush();
  }

  void add_value(const ProtoMessage& content, std::uint64_t at_step) {
    ProtoMessage event;
    event.float64(Event::wall_time, wall_time_now()).integer(Event::step, static_cast<std::int64_t>(at_step));
    event.message(Event::summary, ProtoMessage().message(Summary::value, content));
    add(event);
  }

  // What was written is taken out of the buffer even on failure, so that no frame is ever written twice.
  void flush() {
    std::size_t done = 0;
    int error = 0;
    while (done < buffer.size() && error == 0) {
      const ssize_t written = ::write(fd.get(), buffer.data() + done, buffer.size() - done);
      if (written >= 0) done += static_cast<std::size_t>(written);
      if (written < 0 && errno != EINTR) error = errno;
    }
    buffer.erase(0, done);
    if (error != 0) fail("write", path, error);
  }
};

EventWriter::EventWriter(const Path& folder) : state_(std::make_unique<State>()) {
  make_folder(folder);
  state_->open(folder);
  ProtoMessage version;
  version.float64(Event::wall_time, wall_time_now()).text(Event::file_version, "brain.Event:2");
  state_->add(version);
  state_->flush();
}

EventWriter::~EventWriter() {
  try {
    state_->flush();
  } catch (const Error&) {
    // The curves of the last steps are lost; who must know calls flush() first.
  }
}

void EventWriter::scalar(std::string_view tag, double value, std::uint64_t step) {
  ProtoMessage content;
  content.text(Value::tag, tag).float32(Value::simple_value, static_cast<float>(value));
  state_->add_value(content, step);
}

void EventWriter::image(std::string_view tag, const data::Image& image, std::uint64_t step) {
  ProtoMessage picture;
  picture.integer(Picture::height, image.h).integer(Picture::width, image.w).integer(Picture::colorspace, image.c);
  picture.text(Picture::encoded, data::encode_image(image, data::Encoding::png));
  ProtoMessage content;
  content.text(Value::tag, tag).message(Value::image, picture);
  state_->add_value(content, step);
}

void EventWriter::flush() { state_->flush(); }

}  // namespace dtrain::train
