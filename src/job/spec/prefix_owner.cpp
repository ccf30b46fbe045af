#include "prefix_owner.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <dtrain/base/descriptor_io.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/file_exists.hpp>
#include <dtrain/base/json.hpp>

namespace dtrain::job {
namespace {

constexpr const char* kOwnerSchema = "dtrain.owner/1";

// Behind a text that was longer there is the rest of it until the file is cut: only the first line counts.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

Path owner_file(const Path& prefix) {
  return prefix.parent_path() / fmt::format(".{}.lock", prefix.filename().string());
}

PrefixOwner owner_in(const std::string& text) {
  if (!text.starts_with('{')) return {.job_folder = text};
  try {
    const Json json = Json::parse(first_line(text), "the owner of a prefix");
    return {.token = json.at("token").as_string(),
            .job_folder = json.at("job_dir").as_string(),
            .host = json.at("host").as_string(),
            .process = json.at("pid").as_integer()};
  } catch (const DataError&) {  // its writer was killed, or writes it now
    return {};
  }
}

PrefixOwner read_owner(const Path& prefix) {
  const Path file = owner_file(prefix);
  return file_exists(file) ? owner_in(read_file(file)) : PrefixOwner{};
}

// In place, because a new file of this name would be another one than that of the lock. An NFS client keeps what was
// written until the file is synchronised or closed.
void write_owner(const FileLock& lock, const Path& prefix, const PrefixOwner& owner) {
  const std::string text = Json::object({{"schema", kOwnerSchema},
                                         {"token", owner.token},
                                         {"job_dir", owner.job_folder},
                                         {"host", owner.host},
                                         {"pid", owner.process}})
                               .dump() +
                           "\n";
  const FileDescriptor& file = lock.descriptor();
  const bool written = write_all_at(file, 0, bytes_of(text)) == text.size() &&
                       ::ftruncate(file.get(), static_cast<off_t>(text.size())) == 0 && ::fsync(file.get()) == 0;
  if (written) return;
  throw Error(fmt::format("{}: cannot write: {}", owner_file(prefix).string(), std::strerror(errno)),
              "make room there, or choose another --model-prefix");
}

std::string describe_owner(const PrefixOwner& owner) {
  if (owner.host.empty()) return owner.job_folder.empty() ? "" : fmt::format("job folder {}", owner.job_folder);
  const std::string process = fmt::format("process {} on {}", owner.process, owner.host);
  return owner.job_folder.empty() ? process : fmt::format("{}, job folder {}", process, owner.job_folder);
}

}  // namespace dtrain::job
