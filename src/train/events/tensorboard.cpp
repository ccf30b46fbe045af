#include <dtrain/train/tensorboard.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include <dtrain/base/error.hpp>
#include <dtrain/base/growing_file.hpp>
#include <dtrain/base/machine.hpp>

#include "export/protobuf.hpp"
#include "tensorboard_frame.hpp"

namespace dtrain::train {
namespace {

constexpr std::size_t kBufferSize = 64 << 10;

// Field numbers of tensorflow/core/util/event.proto and tensorflow/core/framework/summary.proto.
enum Event { wall_time = 1, step = 2, file_version = 3, summary = 5, session_log = 7 };
enum Session { status = 1 };
constexpr std::int64_t kSessionStart = 1;
enum Summary { value = 1 };
enum Value { tag = 1, simple_value = 2, image = 4 };
enum Picture { height = 1, width = 2, colorspace = 3, encoded = 4 };

double wall_time_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// TensorBoard takes every file with "tfevents" in its name and reads them in the order of the names. The last number
// tells apart the writers that one process opens within a second.
Path event_path(const Path& folder, int number) {
  return folder / fmt::format("events.out.tfevents.{:010}.{}.{}.{}", static_cast<std::int64_t>(wall_time_now()),
                              host_name(), ::getpid(), number);
}

// Makes a file that no other writer has.
Path make_event_file(const Path& folder) {
  for (int number = 0;; ++number) {
    Path path = event_path(folder, number);
    if (FileDescriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666))) return path;
    if (errno == EEXIST) continue;
    throw Error(fmt::format("{}: cannot create: {}", path.string(), std::strerror(errno)),
                "choose another folder with setting 'tensorboard', or train without it");
  }
}

}  // namespace

struct EventWriter::State {
  explicit State(const Path& folder) : file(make_event_file(folder)) {}

  GrowingFile file;
  std::string buffer;  // whole frames that were not given to the file

  void add(const ProtoMessage& event) {
    buffer += tensorboard_frame(event.bytes());
    if (buffer.size() >= kBufferSize) try_flush();
  }

  void add_value(const ProtoMessage& content, std::uint64_t at_step) {
    ProtoMessage event;
    event.float64(Event::wall_time, wall_time_now()).integer(Event::step, static_cast<std::int64_t>(at_step));
    event.message(Event::summary, ProtoMessage().message(Summary::value, content));
    add(event);
  }

  void flush() {
    const std::string frames = buffer;
    buffer.clear();  // the file keeps what the disk does not take
    file.append(frames);
  }

  void try_flush() {
    try {
      flush();
    } catch (const Error&) {
    }
  }
};

EventWriter::EventWriter(const Path& folder) {
  make_folder(folder);
  state_ = std::make_unique<State>(folder);
  ProtoMessage version;
  version.float64(Event::wall_time, wall_time_now()).text(Event::file_version, "brain.Event:2");
  state_->add(version);
  state_->try_flush();
}

EventWriter::~EventWriter() { state_->try_flush(); }

void EventWriter::restart(std::uint64_t step) {
  ProtoMessage event;
  event.float64(Event::wall_time, wall_time_now()).integer(Event::step, static_cast<std::int64_t>(step));
  event.message(Event::session_log, ProtoMessage().integer(Session::status, kSessionStart));
  state_->add(event);
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

bool EventWriter::is_behind() const { return state_->file.is_behind(); }

}  // namespace dtrain::train
