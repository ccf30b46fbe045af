#include <dtrain/data/copy.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/mutex.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/net/http.hpp>

#include "safe_names.hpp"

namespace dtrain::data {
namespace {

constexpr std::uint64_t kPiece = 16u << 20;

// A "?" begins the query of a web address; in the name of a file or of an object it is a character like any other.
std::string file_name_of(std::string_view from) {
  if (net::is_object_url(from) && !net::is_s3_url(from)) from = from.substr(0, from.find('?'));
  return std::string(from.substr(from.rfind('/') + 1));
}

void refuse_bucket(const std::string& from) {
  if (!net::is_s3_url(from) || !net::parse_s3_url(from).key.empty()) return;
  throw UsageError(fmt::format("{}: names no object", from),
                   "write s3://BUCKET/KEY, or copy all that is in the bucket: setting 'recursive'");
}

bool names_a_folder(const std::string& to) {
  return to.ends_with('/') || (!net::is_object_url(to) && std::filesystem::is_directory(to));
}

// In the order of their names. What would be left out stops it before a file is sent.
std::vector<Path> files_below(const Path& folder) try {
  std::vector<Path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) {
      files.push_back(entry.path());
    } else if (!entry.is_directory() || entry.is_symlink()) {
      refuse_to_send(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
} catch (const std::filesystem::filesystem_error& error) {
  throw Error(fmt::format("{}: {}", (error.path1().empty() ? folder : error.path1()).string(), error.code().message()));
}

struct PlannedCopy {
  std::string from, to;
};

// What orders targets so that those in the way of each other are neighbours: the place that a local name stands for,
// with the folder "a" before "a.b".
std::string place_of(const std::string& to) {
  if (net::is_object_url(to)) return to;
  std::string place = Path(to).lexically_normal().string();
  std::ranges::replace(place, '/', '\0');
  return place;
}

// Throws DataError where two targets are one, or one is a file in which the other would be: s3:// knows the keys a//b
// and a/b, and a beside a/b, which no folder can hold.
void refuse_shared_targets(const std::vector<PlannedCopy>& plan) {
  std::vector<std::pair<std::string, const PlannedCopy*>> places;
  for (const PlannedCopy& one : plan) places.emplace_back(place_of(one.to), &one);
  std::ranges::sort(places);
  for (std::size_t at = 1; at < places.size(); ++at) {
    const auto& [place, first] = places[at - 1];
    const auto& [next, second] = places[at];
    if (next != place && !next.starts_with(place + '\0')) continue;
    throw DataError(fmt::format("{} and {} cannot both be copied: {} {}", first->from, second->from, first->to,
                                next == place ? "would be the target of both" : "cannot be a file and a folder"),
                    "copy one of them by its own name to another target; nothing was copied");
  }
}

class Copier {
 public:
  Copier(net::ObjectStore& store, const CopyOptions& options) : store_(store), options_(options) {}

  CopyResult run() {
    const bool from_far = net::is_object_url(options_.from), to_far = net::is_object_url(options_.to);
    if (!from_far && !to_far) {
      throw UsageError("neither of the two names is remote", "use cp: this copies to or from s3:// or https://");
    }
    if (to_far && !net::is_s3_url(options_.to)) {
      throw UsageError(fmt::format("{}: cannot be written to", net::shown_url(options_.to)),
                       "write to s3://BUCKET/KEY or to a file");
    }
    if (options_.recursive) {
      copy_all(from_far);
    } else {
      refuse_bucket(options_.from);
      copy_one(options_.from, destination_of(file_name_of(options_.from)));
    }
    return result_;
  }

 private:
  std::string destination_of(const std::string& name) const {
    if (!names_a_folder(options_.to)) return options_.to;
    return options_.to + (options_.to.ends_with('/') ? "" : "/") + name;
  }

  // DESTINATION/what the name has behind the common beginning.
  std::string below_destination(std::string_view rest) const {
    while (rest.starts_with('/')) rest.remove_prefix(1);
    if (!net::is_object_url(options_.to)) check_stays_inside(rest, options_.from);
    return options_.to + (options_.to.ends_with('/') ? "" : "/") + std::string(rest);
  }

  void copy_all(bool from_far) {
    if (from_far && !net::is_s3_url(options_.from)) {
      throw UsageError(fmt::format("{}: has no list of its files", net::shown_url(options_.from)), "name each file");
    }
    if (from_far) return copy_bucket(net::parse_s3_url(options_.from));
    if (!std::filesystem::is_directory(options_.from)) {
      throw DataError(fmt::format("{}: no such folder", options_.from), "check the name");
    }
    // relative() would follow a link to a file and give the name of what it leads to.
    for (const Path& file : files_below(options_.from))
      copy_one(file.string(), below_destination(file.lexically_relative(options_.from).string()));
  }

  std::vector<std::string> keys_below(const std::string& folder) {
    std::vector<std::string> keys;
    store_.list(folder, [&](const net::ObjectEntry& entry) {
      if (!entry.key.ends_with('/')) keys.push_back(entry.key);  // such are a console's empty folders
    });
    return keys;
  }

  // "photos" is the folder of photos/a.jpg, and not of photos2/a.jpg. If nothing is below it, it may be an object.
  void copy_bucket(net::S3Url from) {
    const std::string name = from.key.substr(from.key.rfind('/') + 1);  // npos + 1 is 0
    const bool may_be_object = !name.empty();
    if (may_be_object) from.key += '/';
    std::vector<PlannedCopy> plan;
    for (const std::string& key : keys_below(from.text())) {
      const std::string_view rest = std::string_view(key).substr(from.key.size());
      plan.push_back({net::S3Url{from.bucket, key}.text(), below_destination(rest)});
    }
    if (plan.empty() && may_be_object && store_.find(options_.from)) {
      plan.push_back({options_.from, below_destination(name)});
    }
    if (plan.empty()) {
      throw DataError(fmt::format("{}: no object is there", options_.from),
                      fmt::format("check the name: what is below {} would be copied", from.text()));
    }
    refuse_shared_targets(plan);
    for (const PlannedCopy& one : plan) copy_one(one.from, one.to);
  }

  void copy_one(const std::string& from, const std::string& to) {
    if (!net::is_object_url(from)) return upload(from, to);
    if (!net::is_object_url(to)) return download(from, to);
    relay(from, to);
  }

  void tell(std::string_view file, std::uint64_t done, std::uint64_t total) {
    const MutexLock lock(telling_);
    if (options_.progress) options_.progress(net::shown_url(file), done, total);
  }

  // Whether the object is there with this content already, by its checksum.
  bool holds(const std::string& url, ByteView content) {
    try {
      const auto state = store_.find(url);
      return state && store_.compare(url, *state, content) == net::ContentMatch::same;
    } catch (const net::AwsError& error) {
      if (error.facts().problem == net::AwsProblem::denied) return false;  // who may write need not be let read
      throw;
    }
  }

  void upload(const std::string& from, const std::string& to) {
    if (std::filesystem::is_directory(from)) {
      throw UsageError(fmt::format("{}: is a folder", from), "copy what is below it: setting 'recursive'");
    }
    const MappedFile file{Path(from)};
    const ByteView content = file.bytes();
    if (holds(to, content)) {
      ++result_.already_there;
      return;
    }
    net::ObjectUpload upload(store_, to);
    for (std::uint64_t at = 0; at < content.size(); at += kPiece) {
      upload.write(content.subspan(at, std::min<std::uint64_t>(kPiece, content.size() - at)));
      tell(from, std::min<std::uint64_t>(at + kPiece, content.size()), content.size());
    }
    upload.finish();
    result_.resumed_bytes += upload.reused();
    count(content.size());
  }

  void download(const std::string& from, const std::string& to) {
    const auto progress = [&](std::uint64_t done, std::uint64_t total) { tell(from, done, total); };
    if (!net::is_s3_url(from)) {  // it may know no ranges
      net::Download request;
      request.url = from;
      request.to = to;
      request.progress = progress;
      net::download(request);
      return count(std::filesystem::file_size(to));
    }
    if (std::filesystem::is_regular_file(to)) {
      const MappedFile there{Path(to)};
      if (holds(from, there.bytes())) {
        ++result_.already_there;
        return;
      }
    }
    store_.download(from, to, progress);
    count(std::filesystem::file_size(to));
  }

  // Through this machine's memory, piece by piece.
  void relay(const std::string& from, const std::string& to) {
    const net::ObjectState state = store_.state(from);
    net::ObjectUpload upload(store_, to);
    std::string piece;
    for (std::uint64_t at = 0; at < state.size; at += piece.size()) {
      piece.resize(std::min(kPiece, state.size - at));
      store_.read(from, state, at, std::as_writable_bytes(std::span(piece)));
      upload.write(bytes_of(piece));
      tell(from, at + piece.size(), state.size);
    }
    upload.finish();
    count(state.size);
  }

  void count(std::uint64_t bytes) {
    ++result_.files;
    result_.bytes += bytes;
  }

  net::ObjectStore& store_;
  const CopyOptions& options_;
  CopyResult result_;
  Mutex telling_;  // serialises the calls of options_.progress
};

}  // namespace

CopyResult copy_files(net::ObjectStore& store, const CopyOptions& options) { return Copier(store, options).run(); }

}  // namespace dtrain::data
