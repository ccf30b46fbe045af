#include "sftp.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <utility>

#include <dtrain/base/text.hpp>

#include "login_text.hpp"
#include "sftp_packet.hpp"

namespace dtrain::net::ssh {
namespace {

using namespace std::chrono_literals;

enum Type : std::uint8_t {
  kInit = 1,
  kVersion = 2,
  kOpen = 3,
  kClose = 4,
  kRead = 5,
  kWrite = 6,
  kSetStat = 9,
  kOpenFolder = 11,
  kReadFolder = 12,
  kRemove = 13,
  kMakeFolder = 14,
  kStat = 17,
  kRename = 18,
  kStatus = 101,
  kHandle = 102,
  kData = 103,
  kName = 104,
  kAttributes = 105,
  kExtended = 200,
  kExtendedReply = 201,
};
enum Code : std::uint32_t { kOk = 0, kEndOfFile = 1, kNoSuchFile = 2, kFailure = 4 };
enum Flag : std::uint32_t { kForReading = 1, kForWriting = 2, kCreate = 8, kTruncate = 16 };

constexpr std::uint32_t kProtocol = 3;
constexpr std::size_t kLargestPacket = 1 << 20;
constexpr std::size_t kMostWrites = 64;  // in flight
constexpr auto kStartDeadline = 20s;
constexpr std::uint64_t kLeastRoom = 32 << 10;  // bytes; with less a disk is full

constexpr std::size_t kMostShown = 60;  // of bytes that are not SFTP

std::string mode_attributes(unsigned mode) { return Packer().u32(kHasMode).u32(mode).bytes(); }

}  // namespace

Sftp::Sftp(Connection& connection, std::chrono::milliseconds silence, std::stop_token stop)
    : connection_(connection),
      silence_(silence),
      stop_(std::move(stop)),
      channel_(connection, {Clock::now() + kStartDeadline, stop_}) {
  channel_.subsystem("sftp", {Clock::now() + kStartDeadline, stop_});
  begin();
}

void Sftp::begin() {
  transmit(Packer().byte(kInit).u32(kProtocol).bytes());
  const std::string packet = next_packet();
  Unpacker fields(packet);
  if (fields.byte() != kVersion || fields.u32() < kProtocol) {
    throw RemoteError(fmt::format("{}: it speaks no SFTP of version 3", connection_.name()));
  }
  while (!fields.empty()) {
    if (fields.text() == "posix-rename@openssh.com") can_replace_ = true;
    fields.text();
  }
}

std::optional<SshFile> Sftp::stat(const std::string& path) {
  const Reply reply = ask(kStat, Packer().text(path).bytes());
  if (reply.type == kAttributes) {
    SshFile file = parse_attributes(reply.body);
    file.name = path.substr(path.rfind('/') + 1);
    return file;
  }
  const Status status = status_of(reply);
  if (status.code == kNoSuchFile) return std::nullopt;
  fail(fmt::format("look at {}", path), status);
}

std::vector<SshFile> Sftp::list(const std::string& folder) {
  const std::string what = fmt::format("list {}", folder);
  const std::string handle = expect_handle(ask(kOpenFolder, Packer().text(folder).bytes()), what);
  std::vector<SshFile> files;
  for (;;) {
    const Reply reply = ask(kReadFolder, Packer().text(handle).bytes());
    if (reply.type != kName) {
      const Status status = status_of(reply);
      close(handle);
      if (status.code != kEndOfFile) fail(what, status);
      return files;
    }
    for (SshFile& file : parse_names(reply.body)) {
      if (file.name != "." && file.name != "..") files.push_back(std::move(file));
    }
  }
}

bool Sftp::make_one_folder(const std::string& path, unsigned mode) {
  return status_of(ask(kMakeFolder, Packer().text(path).raw(mode_attributes(mode)).bytes())).code == kOk;
}

void Sftp::rename(const std::string& from, const std::string& to) {
  const std::string what = fmt::format("rename {} to {}", from, to);
  if (can_replace_) {
    expect_ok(ask(kExtended, Packer().text("posix-rename@openssh.com").text(from).text(to).bytes()), what);
  } else {
    remove(to);
    expect_ok(ask(kRename, Packer().text(from).text(to).bytes()), what);
  }
}

bool Sftp::remove(const std::string& path) {
  const Status status = status_of(ask(kRemove, Packer().text(path).bytes()));
  if (status.code != kOk && status.code != kNoSuchFile) fail(fmt::format("remove {}", path), status);
  return status.code == kOk;
}

Sftp::Reply Sftp::ask_mode(const std::string& path, unsigned mode) {
  return ask(kSetStat, Packer().text(path).raw(mode_attributes(mode)).bytes());
}

void Sftp::set_mode(const std::string& path, unsigned mode) {
  expect_ok(ask_mode(path, mode), fmt::format("set the permissions of {}", path));
}

bool Sftp::try_set_mode(const std::string& path, unsigned mode) { return status_of(ask_mode(path, mode)).code == kOk; }

std::string Sftp::open(const std::string& path, Open how, unsigned mode) {
  const std::uint32_t flags = how == Open::read ? kForReading : kForWriting | kCreate | kTruncate;
  return expect_handle(ask(kOpen, Packer().text(path).u32(flags).raw(mode_attributes(mode)).bytes()),
                       fmt::format("{} {}", how == Open::read ? "read" : "write", path));
}

void Sftp::close(const std::string& handle) { expect_ok(ask(kClose, Packer().text(handle).bytes()), "close a file"); }

void Sftp::write(const std::string& handle, std::uint64_t offset, std::string_view bytes) {
  if (failed_write_) finish_writes(handle);
  writing_.insert(send(kWrite, Packer().text(handle).u64(offset).text(bytes).bytes()));
  while (writing_.size() >= kMostWrites) take_write_answer(receive());
}

void Sftp::finish_writes(const std::string& handle) {
  while (!writing_.empty()) take_write_answer(receive());
  if (const auto failed = std::exchange(failed_write_, std::nullopt)) fail_to_write(handle, *failed);
}

// "Failure" is the protocol's word for a full disk and for all else that it has no word for.
void Sftp::fail_to_write(const std::string& handle, const Status& status) {
  const std::string what = "write to a file";
  const bool is_full = status.code == kFailure && has_no_room(handle);
  (void)ask(kClose, Packer().text(handle).bytes());
  if (is_full) fail(what, {kFailure, "its disk is full"}, "free some space there or choose another folder");
  fail(what, status, status.code == kFailure ? "is the disk there full, or a quota used up? Look with: df -h" : "");
}

// What the file's disk has left, in PROTOCOL of OpenSSH: fstatvfs@openssh.com.
bool Sftp::has_no_room(const std::string& handle) {
  const Reply reply = ask(kExtended, Packer().text("fstatvfs@openssh.com").text(handle).bytes());
  if (reply.type != kExtendedReply) return false;
  Unpacker fields(reply.body);
  fields.u64();  // the preferred size of a block
  const std::uint64_t block = fields.u64();
  fields.u64(), fields.u64();  // blocks in all, and free ones with those that are root's
  return fields.u64() * block < kLeastRoom;
}

void Sftp::forget_writes() {
  writing_.clear();
  failed_write_.reset();
}

std::string Sftp::read(const std::string& handle, std::uint64_t offset, std::uint32_t most) {
  const Reply reply = ask(kRead, Packer().text(handle).u64(offset).u32(most).bytes());
  if (reply.type == kData) return std::string(Unpacker(reply.body).text());
  const Status status = status_of(reply);
  if (status.code != kEndOfFile) fail("read a file", status);
  return {};
}

std::uint32_t Sftp::send(std::uint8_t type, std::string_view body) {
  const std::uint32_t id = ++last_id_;
  transmit(Packer().byte(type).u32(id).raw(body).bytes());
  return id;
}

Sftp::Reply Sftp::ask(std::uint8_t type, std::string_view body) {
  const std::uint32_t id = send(type, body);
  for (;;) {
    Reply reply = receive();
    if (reply.id == id) return reply;
    take_write_answer(reply);
  }
}

Sftp::Reply Sftp::receive() {
  const std::string packet = next_packet();
  Unpacker fields(packet);
  Reply reply;
  reply.type = fields.byte();
  reply.id = fields.u32();
  reply.body = packet.substr(5);
  return reply;
}

void Sftp::take_write_answer(const Reply& reply) {
  if (writing_.erase(reply.id) == 0) return;  // the reply to a request that was abandoned
  Status status = status_of(reply);
  if (status.code != kOk && !failed_write_) failed_write_ = std::move(status);
}

Sftp::Status Sftp::status_of(const Reply& reply) const {
  if (reply.type != kStatus) return {~0u, "its reply fits no request"};
  Unpacker fields(reply.body);
  const std::uint32_t code = fields.u32();
  return {code, fields.empty() ? fmt::format("error {}", code) : std::string(fields.text())};
}

void Sftp::expect_ok(const Reply& reply, std::string_view what) const {
  if (const Status status = status_of(reply); status.code != kOk) fail(what, status);
}

std::string Sftp::expect_handle(const Reply& reply, std::string_view what) const {
  if (reply.type != kHandle) fail(what, status_of(reply));
  return std::string(Unpacker(reply.body).text());
}

void Sftp::fail(std::string_view what, const Status& status, std::string hint) const {
  throw RemoteError(fmt::format("{}: cannot {}: {}", connection_.name(), what, status.message), std::move(hint));
}

void Sftp::transmit(std::string_view packet) {
  const std::string framed = Packer().text(packet).bytes();
  std::string_view left = framed;
  for (Patience wait = patience(); !left.empty(); connection_.pump(wait)) {
    const std::size_t before = left.size();
    if (!channel_.send(left) || connection_.is_lost()) connection_.fail("the connection was lost while a file moved");
    if (left.empty()) return;
    if (left.size() < before) wait = patience();
    if (wait.is_over())
      connection_.fail(fmt::format("it took nothing for {} while a file moved", format_duration(silence_)));
  }
}

// sshd starts an SFTP server that is a program by the user's shell, and what the shell prints stands before its
// packets.
void Sftp::refuse_strange_bytes() const {
  const std::string text = on_one_line(std::string_view(received_).substr(0, kMostShown));
  const bool is_first = last_id_ == 0;
  throw RemoteError(fmt::format("{}: it sent something that is not SFTP: '{}'", connection_.name(), text),
                    is_first ? kLoginTextHint : "");
}

std::string Sftp::next_packet() {
  for (Patience wait = patience();; connection_.pump(wait)) {
    if (std::string news = channel_.take_output(); !news.empty()) {
      received_ += news;
      wait = patience();
    }
    if (received_.size() >= 4) {
      const std::size_t size = Unpacker(received_).u32();
      if (size < 5 || size > kLargestPacket) refuse_strange_bytes();
      if (received_.size() >= 4 + size) {
        std::string packet = received_.substr(4, size);
        received_.erase(0, 4 + size);
        return packet;
      }
    }
    if (channel_.is_closed() || connection_.is_lost()) connection_.fail("its SFTP server is gone");
    if (wait.is_over()) throw RemoteError(fmt::format("{}: no answer about files in time", connection_.name()));
  }
}

}  // namespace dtrain::net::ssh
