#include <dtrain/data/copy.hpp>

#include <fmt/format.h>

#include <algorithm>

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
    if (from_far) return copy_bucket();
    if (!std::filesystem::is_directory(options_.from)) {
      throw DataError(fmt::format("{}: no such folder", options_.from), "check the name");
    }
    // relative() would follow a link to a file and give the name of what it leads to.
    for (const Path& file : files_below(options_.from))
      copy_one(file.string(), below_destination(file.lexically_relative(options_.from).string()));
  }

  void copy_bucket() {
    const net::S3Url from = net::parse_s3_url(options_.from);
    std::vector<std::string> keys;
    store_.list(options_.from, [&](const net::ObjectEntry& entry) {
      if (!entry.key.ends_with('/')) keys.push_back(entry.key);  // such are a console's empty folders
    });
    if (keys.empty()) throw DataError(fmt::format("{}: no object begins so", options_.from), "check the name");
    for (const std::string& key : keys) {
      // "photos" holds photos/a.jpg, and is the beginning of photos2/a.jpg too: names keep what is behind the last /.
      const std::size_t cut = from.key.rfind('/') == from.key.npos ? 0 : from.key.rfind('/') + 1;
      const bool whole_folder =
          key.size() > from.key.size() && (key[from.key.size()] == '/' || from.key.ends_with('/'));
      const std::string_view rest = std::string_view(key).substr(whole_folder ? from.key.size() : cut);
      copy_one(net::S3Url{from.bucket, key}.text(), below_destination(rest));
    }
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
