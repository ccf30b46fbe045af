// What SshSession does with files on the host.
#include <fmt/format.h>

#include <functional>
#include <utility>

#include <dtrain/base/file_pieces.hpp>
#include <dtrain/base/hash.hpp>
#include <dtrain/base/temporaries.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/net/ssh.hpp>

#include "session.hpp"

namespace dtrain::net {
namespace {

constexpr std::size_t kPiece = 32 << 10;  // what every server takes

// A name of its own for each of several writers of the same file. It says which process writes, so that what one leaves
// that was killed can be told from what others write (is_temporary_of_ended_process()).
std::string temporary_name(const std::string& path) { return temporary_for(path).string(); }

// Where the source fails, the session is left as if nothing had been written.
std::string_view next_of(const std::function<std::string_view()>& next, ssh::Sftp& files, const std::string& handle) {
  try {
    return next();
  } catch (const Error&) {
    files.forget_writes();
    files.close(handle);
    throw;
  }
}

void put(ssh::Sftp& files, const std::function<std::string_view()>& next, const std::string& path, unsigned mode) {
  const std::string handle = files.open(path, ssh::Sftp::Open::create);
  std::uint64_t done = 0;
  for (std::string_view content; !(content = next_of(next, files, handle)).empty(); done += content.size()) {
    for (std::size_t at = 0; at < content.size(); at += kPiece) {
      files.write(handle, done + at, content.substr(at, kPiece));
    }
  }
  files.finish_writes(handle);
  files.close(handle);
  files.set_mode(path, mode);
}

// Hands over the pieces of a file, from byte `at` on, until `take` has enough (false).
void read_pieces(ssh::Sftp& files, const std::string& path, const std::function<bool(std::string_view)>& take,
                 std::uint64_t at = 0) {
  const std::string handle = files.open(path, ssh::Sftp::Open::read);
  std::string piece;
  for (; !(piece = files.read(handle, at, kPiece)).empty(); at += piece.size()) {
    if (!take(piece)) break;
  }
  files.close(handle);
}

bool is_sha256(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

ssh::Sftp& SshSession::State::files() {
  if (!sftp) sftp = std::make_unique<ssh::Sftp>(connection(), options.silence, options.stop);
  return *sftp;
}

std::optional<SshFile> SshSession::stat(const std::string& path) { return state_->files().stat(path); }

std::vector<SshFile> SshSession::list(const std::string& folder) {
  std::vector<SshFile> files = state_->files().list(folder);
  for (SshFile& file : files) {
    if (file.kind != SshFile::Kind::other) continue;
    if (const auto target = stat(folder + "/" + file.name)) {  // a link: what it leads to
      file = {file.name, target->kind, target->size, target->mode, target->mtime};
    }
  }
  return files;
}

void SshSession::make_folder(const std::string& path, unsigned mode) {
  ssh::Sftp& files = state_->files();
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (!part.empty() && !files.make_one_folder(part, mode)) {
      const auto there = files.stat(part);
      if (!there || there->kind != SshFile::Kind::folder) {
        throw RemoteError(fmt::format("{}: cannot make the folder {}: {}", name(), path,
                                      there ? part + " is a file" : "not allowed in " + part));
      }
    }
    if (end == std::string::npos) return;
  }
}

void SshSession::put_text(std::string_view content, const std::string& remote, unsigned mode) {
  put_pieces([&] { return std::exchange(content, {}); }, remote, mode);
}

void SshSession::put_pieces(const std::function<std::string_view()>& next, const std::string& remote, unsigned mode) {
  ssh::Sftp& files = state_->files();
  const std::string temporary = temporary_name(remote);
  try {
    put(files, next, temporary, mode);
    files.rename(temporary, remote);
  } catch (const RemoteError& error) {
    if (!state_->connection().is_lost()) files.remove(temporary);
    throw RemoteError(fmt::format("{} (putting {})", error.what(), remote), error.hint());
  } catch (const Stopped&) {  // the host is not asked for anything more
    throw;
  } catch (const Error&) {  // of what gives the pieces: the session still works
    files.remove(temporary);
    throw;
  }
}

void SshSession::put_file(const Path& local, const std::string& remote, unsigned mode) {
  FilePieces file(local);
  put_pieces([&] { return file.next(); }, remote, mode);
}

std::string SshSession::read_file(const std::string& path, std::size_t most_bytes) {
  std::string content;
  read_pieces(state_->files(), path, [&](std::string_view piece) {
    content += piece;
    return content.size() <= most_bytes;
  });
  if (content.size() <= most_bytes) return content;
  throw RemoteError(fmt::format("{}: {} is longer than {}", name(), path, format_bytes(most_bytes)));
}

std::string SshSession::read_part(const std::string& path, std::uint64_t from, std::size_t most) {
  std::string content;
  const auto take = [&](std::string_view piece) {
    content += piece.substr(0, most - content.size());
    return content.size() < most;
  };
  read_pieces(state_->files(), path, take, from);
  return content;
}

void SshSession::rename(const std::string& from, const std::string& to) { state_->files().rename(from, to); }

bool SshSession::set_mode(const std::string& path, unsigned mode) { return state_->files().try_set_mode(path, mode); }

void SshSession::remove(const std::string& path) { state_->files().remove(path); }

std::optional<std::string> SshSession::sha256(const std::string& path) {
  if (!stat(path)) return std::nullopt;
  std::string output;
  SshCommand command;
  command.argv = {"sha256sum", "--", path};
  command.skip_login_text = true;
  command.on_output = [&](std::string_view piece) { output += piece; };
  // A backslash in front says that the name was written with escapes.
  const bool ended_well = run(command).ok();
  const std::string hash = output.substr(output.starts_with('\\') ? 1 : 0).substr(0, 64);
  if (ended_well && is_sha256(hash)) return hash;
  Sha256 own;
  read_pieces(state_->files(), path, [&](std::string_view piece) {
    own.update(bytes_of(piece));
    return true;
  });
  return own.hex();
}

}  // namespace dtrain::net
