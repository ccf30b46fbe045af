#include <dtrain/launcher/sync.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <span>

#include <dtrain/base/error.hpp>
#include <dtrain/base/file_pieces.hpp>
#include <dtrain/base/hash.hpp>
#include <dtrain/base/temporaries.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::launcher {
namespace {

constexpr std::size_t kHashSize = 64;
constexpr unsigned kSyncedMode = 0777;  // as read_tree() has it
constexpr int kNotFound = 127;          // exit code of xargs: no such program

// For xargs -0. Of files or of folders.
template <typename Entries>
std::string input_of(const Entries& entries) {
  std::string text;
  for (const auto& entry : entries) text += entry.name + '\0';
  return text;
}

// One octal number per line.
std::vector<unsigned> parse_modes(const std::string& output) {
  std::vector<unsigned> modes;
  for (const std::string& line : split(trim(output), '\n')) {
    unsigned mode = 0;
    const auto read = std::from_chars(line.data(), line.data() + line.size(), mode, 8);
    if (read.ec != std::errc() || read.ptr != line.data() + line.size()) return {};
    modes.push_back(mode & kSyncedMode);
  }
  return modes;
}

// sha256sum escapes a name that has a line end or a backslash.
std::string unescaped(std::string_view text) {
  std::string name;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '\\' && i + 1 < text.size();
    if (escape) ++i;
    name += escape && text[i] == 'n' ? '\n' : escape && text[i] == 'r' ? '\r' : text[i];
  }
  return name;
}

// One "HASH  NAME" or "\HASH  ESCAPED" per line.
std::map<std::string, std::string> parse_hashes(const std::string& output) {
  std::map<std::string, std::string> hashes;
  for (const std::string& whole : split(output, '\n')) {
    const bool escaped = whole.starts_with('\\');
    const std::string_view line = std::string_view(whole).substr(escaped ? 1 : 0);
    if (line.size() < kHashSize + 2) continue;
    const std::string_view name = line.substr(kHashSize + 2);
    hashes[escaped ? unescaped(name) : std::string(name)] = line.substr(0, kHashSize);
  }
  return hashes;
}

class Copy {
 public:
  Copy(const SyncTree& tree, net::SshSession& session, std::string folder)
      : tree_(tree), session_(session), folder_(std::move(folder)) {}

  SyncResult run() {
    make_folders();
    Parted parted = parted_by_content(tree_.files);
    for (const SyncFile& file : of_another_mode(parted.same)) {
      const bool is_set = session_.set_mode(path_of(file), file.mode);
      ++(is_set ? result_.modes : result_.refused_modes);
    }
    result_.files = tree_.files.size() - without_removed(parted.different);
    remove_abandoned(parted.different);
    for (SyncFile& file : parted.different) put(file);
    check(parted.different);
    result_.copied = parted.different.size();
    return result_;
  }

 private:
  std::string path_of(const SyncFile& file) const { return folder_ + "/" + file.name; }

  // Removes what syncs of this machine left that were killed or lost their connection, beside the files that are copied
  // now: such a sync is begun again for the same files.
  void remove_abandoned(const std::vector<SyncFile>& files) {
    std::set<std::string> folders, own;
    for (const SyncFile& file : files) folders.insert(file.name.substr(0, file.name.rfind('/') + 1));
    for (const SyncFile& file : tree_.files) own.insert(file.name);
    for (const std::string& folder : folders) {
      for (const net::SshFile& there : content_of(folder)) {
        const std::string name = folder + there.name;
        if (there.kind != net::SshFile::Kind::file || own.contains(name)) continue;
        if (is_temporary_of_ended_process(there.name)) session_.remove(folder_ + "/" + name);
      }
    }
  }

  // Nothing where the user may write and not list.
  std::vector<net::SshFile> content_of(const std::string& folder) try {
    return session_.list(folder_ + "/" + folder);
  } catch (const RemoteError&) {
    return {};
  }

  void put(SyncFile& file) {
    FilePieces content(file.path);
    Sha256 hash;
    const auto next = [&] {
      const std::string_view piece = content.next();
      hash.update(bytes_of(piece));
      return piece;
    };
    session_.put_pieces(next, path_of(file), file.mode);
    file.sha256 = hash.hex();  // of what was sent: the file may have changed since the tree was read
    result_.bytes += content.size();
  }

  void make_folders() {
    session_.make_folder(folder_);
    std::map<std::pair<std::ptrdiff_t, unsigned>, std::vector<SyncFolder>> alike;  // parents first
    for (const SyncFolder& folder : tree_.folders)
      alike[{std::ranges::count(folder.name, '/'), folder.mode}].push_back(folder);
    for (const auto& [key, folders] : alike) make_folders_of_a_mode(folders);
  }

  // With -m, mkdir gives the mode to those that it makes, and leaves others as they are.
  void make_folders_of_a_mode(std::span<const SyncFolder> folders) {
    net::SshCommand command{
        .argv = {"xargs", "-0", "mkdir", "-p", "-m", fmt::format("{:o}", folders.front().mode), "--"},
        .folder = folder_,
        .input = input_of(folders)};
    std::string words;
    command.on_error = [&](std::string_view bytes) { words += bytes; };
    if (!session_.run(command).ok()) {
      throw RemoteError(fmt::format("{}: cannot make folders in {}: {}", session_.name(), folder_, trim(words)));
    }
  }

  // Leaves out files that were removed here since the tree was read; returns how many.
  static std::size_t without_removed(std::vector<SyncFile>& files) {
    return std::erase_if(files, [](const SyncFile& file) {
      std::error_code ignored;
      return !std::filesystem::exists(file.path, ignored);
    });
  }

  struct Parted {
    std::vector<SyncFile> same, different;  // different: or missing there
  };
  Parted parted_by_content(const std::vector<SyncFile>& files) {
    const std::map<std::string, std::string> hashes = hashes_of(files);
    Parted parted;
    for (const SyncFile& file : files) {
      const auto found = hashes.find(file.name);
      const bool is_same = found != hashes.end() && found->second == file.sha256;
      (is_same ? parted.same : parted.different).push_back(file);
    }
    return parted;
  }

  std::vector<SyncFile> of_another_mode(const std::vector<SyncFile>& files) {
    const std::vector<unsigned> modes = modes_of(files);
    std::vector<SyncFile> wrong;
    for (std::size_t i = 0; i < files.size(); ++i) {
      if (modes[i] != files[i].mode) wrong.push_back(files[i]);
    }
    return wrong;
  }

  // In the order of the files, which are there.
  std::vector<unsigned> modes_of(const std::vector<SyncFile>& files) {
    if (files.empty()) return {};
    std::string output;
    net::SshCommand command{
        .argv = {"xargs", "-0", "stat", "-L", "-c", "%a", "--"}, .folder = folder_, .input = input_of(files)};
    command.skip_login_text = true;
    command.on_output = [&](std::string_view bytes) { output += bytes; };
    const bool is_known = session_.run(command).ok();
    std::vector<unsigned> modes = parse_modes(output);
    if (is_known && modes.size() == files.size()) return modes;
    modes.clear();  // a host with another stat, or none
    for (const SyncFile& file : files) {
      const auto there = session_.stat(path_of(file));
      modes.push_back(there ? there->mode & kSyncedMode : file.mode);
    }
    return modes;
  }

  std::map<std::string, std::string> hashes_of(const std::vector<SyncFile>& files) {
    if (files.empty()) return {};
    std::string output;
    net::SshCommand command{.argv = {"xargs", "-0", "sha256sum", "--"}, .folder = folder_, .input = input_of(files)};
    command.skip_login_text = true;
    command.on_output = [&](std::string_view bytes) { output += bytes; };
    if (session_.run(command).code != kNotFound) return parse_hashes(output);
    std::map<std::string, std::string> hashes;  // a host without these programs: read the files back
    for (const SyncFile& file : files) {
      if (const auto hash = session_.sha256(path_of(file))) hashes[file.name] = *hash;
    }
    return hashes;
  }

  void check(const std::vector<SyncFile>& copied) {
    const std::vector<SyncFile> wrong = parted_by_content(copied).different;
    if (wrong.empty()) return;
    throw RemoteError(fmt::format("{}: {} differs from what was sent", session_.name(), path_of(wrong.front())),
                      "it changed here or there during the copy: sync again");
  }

  const SyncTree& tree_;
  net::SshSession& session_;
  const std::string folder_;
  SyncResult result_;
};

// A tree of one file under its name on the host.
SyncTree renamed(const SyncTree& tree, const std::string& name) {
  SyncTree result = tree;
  result.files.front().name = name;
  return result;
}

bool is_folder(net::SshSession& session, const std::string& path) {
  const auto there = session.stat(path);
  return there && there->kind == net::SshFile::Kind::folder;
}

std::string in_home(std::string path) {
  if (path == "~" || path.starts_with("~/")) path.erase(0, std::min<std::size_t>(2, path.size()));
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path.empty() ? "." : path;
}

}  // namespace

std::string refused_modes_text(const SyncResult& result) {
  if (result.refused_modes == 0) return {};
  return fmt::format("permissions of {} file{} differ and stay: the user who logs in may not set them",
                     result.refused_modes, result.refused_modes == 1 ? "" : "s");
}

SyncResult sync_tree(const SyncTree& tree, net::SshSession& session, std::string destination) {
  const bool names_folder = destination.empty() || destination.ends_with('/');
  destination = in_home(std::move(destination));
  if (tree.is_folder || names_folder || is_folder(session, destination)) return Copy(tree, session, destination).run();
  const std::size_t slash = destination.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : destination.substr(0, slash);
  const SyncTree one = renamed(tree, destination.substr(slash == std::string::npos ? 0 : slash + 1));
  return Copy(one, session, folder).run();
}

}  // namespace dtrain::launcher
