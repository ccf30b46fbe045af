#include <dtrain/launcher/program_copy.hpp>

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>
#include <dtrain/base/process.hpp>

namespace dtrain::launcher {
namespace {

constexpr const char* kSelf = "/proc/self/exe";
// Relative to the user's home folder.
constexpr const char* kCache = ".cache/dtrain";
// The last file of a copy: a copy without it is incomplete.
constexpr const char* kComplete = "complete";
constexpr unsigned kFolderMode = 0700;

std::string hash_of(const Path& file) { return sha256_hex(MappedFile(file).bytes()); }

}  // namespace

ProgramCopy::ProgramCopy() : command_(own_command()), bundle_(bundle_of(command_)) {
  if (command_.size() == 1) command_[0] = std::filesystem::read_symlink(kSelf).string();
  if (!bundle_.empty()) command_ = {(bundle_ / "dtrain").string()};
}

ProgramCopy::Ready ProgramCopy::make_ready(net::SshSession& session) {
  if (bundle_.empty()) {
    check_same(session);
  } else if (!is_at_same_path(session)) {
    return copy_bundle(session);
  }
  return {.command = command_};
}

const ProgramCopy::Facts& ProgramCopy::facts() {
  const MutexLock lock(mutex_);
  if (!known_) facts_ = bundle_.empty() ? Facts{hash_of(kSelf), {}} : read_bundle();
  known_ = true;
  return facts_;
}

ProgramCopy::Facts ProgramCopy::read_bundle() const {
  Facts facts{"", bundle_files(bundle_)};
  std::string list;
  for (const ProgramFile& file : facts.files) {
    list += fmt::format("{} {:o} {}\n", file.name, file.mode, hash_of(file.path));
  }
  facts.hash = sha256_hex(bytes_of(list));
  return facts;
}

// True for a shared folder, and for a bundle that was unpacked at the same path.
bool ProgramCopy::is_at_same_path(net::SshSession& session) {
  const Path program = bundle_ / "bin" / "dtrain";
  if (session.sha256(program) != hash_of(program)) return false;
  return std::ranges::all_of(facts().files, [&](const ProgramFile& file) {
    const auto there = session.stat(bundle_ / file.name);
    return there && there->size == file.size;
  });
}

// A copy that was interrupted continues with the missing files: each appears whole or not at all.
ProgramCopy::Ready ProgramCopy::copy_bundle(net::SshSession& session) {
  const Facts& bundle = facts();
  const std::string folder = fmt::format("{}/{}", kCache, bundle.hash);
  Ready ready{.command = {folder + "/dtrain"}};
  if (session.stat(fmt::format("{}/{}", folder, kComplete))) return ready;
  for (const char* part : {"bin", "lib"}) session.make_folder(fmt::format("{}/{}", folder, part), kFolderMode);
  for (const ProgramFile& file : bundle.files) {
    const std::string there = fmt::format("{}/{}", folder, file.name);
    if (const auto found = session.stat(there); found && found->size == file.size) continue;
    session.put_file(file.path, there, file.mode);
    ready.copied += file.size;
  }
  session.put_text(bundle.hash + "\n", fmt::format("{}/{}", folder, kComplete), 0644);
  return ready;
}

void ProgramCopy::check_same(net::SshSession& session) {
  const std::string& path = command_[0];
  const auto there = session.sha256(path);
  if (there == facts().hash) return;
  throw RemoteError(
      fmt::format("{}: {} {}", session.name(), path, there ? "is another program than here" : "is not there"),
      "run dtrain from its bundle (dtrain-*-linux-x86_64/dtrain), which copies itself to hosts; or put the same "
      "program "
      "to the same path there");
}

}  // namespace dtrain::launcher
