#include <dtrain/data/bundle.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include <dtrain/base/error.hpp>
#include <dtrain/base/tar.hpp>

#include "safe_names.hpp"

namespace dtrain::data {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t kPiece = 16u << 20;

struct Member {
  TarFile head;
  Path path;
};

void check_target(const std::string& to) {
  if (!net::is_s3_url(to) || to.ends_with('/') || net::parse_s3_url(to).key.empty()) {
    throw UsageError(fmt::format("{}: names no object of a bucket", to), "write setting 'to' s3://BUCKET/NAME.tar");
  }
}

// "photos" of "photos/", "../photos" and of "." below it.
std::string own_name(const Path& source) {
  Path whole = fs::absolute(source).lexically_normal();
  if (whole.filename().empty()) whole = whole.parent_path();
  if (whole.filename().empty()) throw UsageError(fmt::format("{}: has no name", source.string()), "name its folders");
  return whole.filename().string();
}

class MemberList {
 public:
  void add_source(const Path& source) {
    if (!fs::exists(source)) throw UsageError(fmt::format("{}: no such file or folder", source.string()));
    try {
      add(fs::directory_entry(source), own_name(source), /*follow=*/true);
    } catch (const fs::filesystem_error& error) {
      throw Error(fmt::format("{}: {}", source.string(), error.code().message()));
    }
  }
  std::vector<Member> take() { return std::move(members_); }

 private:
  void add(const fs::directory_entry& entry, const std::string& name, bool follow) {
    TarFile head;
    head.name = name;
    head.mode = static_cast<unsigned>(entry.status().permissions() & fs::perms::all);
    if (entry.is_regular_file()) {
      head.size = entry.file_size();
      keep(head, entry.path());
    } else if (entry.is_directory() && (follow || !entry.is_symlink())) {
      head.folder = true;
      keep(head, entry.path());
      add_below(entry.path(), name);
    } else {
      refuse_to_send(entry.path());
    }
  }

  void add_below(const Path& folder, const std::string& name) {
    std::vector<fs::directory_entry> entries(fs::directory_iterator(folder), fs::directory_iterator{});
    std::ranges::sort(entries);
    for (const fs::directory_entry& entry : entries) {
      add(entry, name + "/" + entry.path().filename().string(), /*follow=*/false);
    }
  }

  void keep(const TarFile& head, const Path& path) {
    if (!names_.insert(head.name).second) {
      throw UsageError(fmt::format("two sources hold {}", head.name), "rename one: an archive would keep one of them");
    }
    members_.push_back({head, path});
  }

  std::vector<Member> members_;
  std::set<std::string> names_;
};

std::vector<Member> members_of(const std::vector<Path>& sources) {
  MemberList list;
  for (const Path& source : sources) list.add_source(source);
  return list.take();
}

std::uint64_t size_of_archive(const std::vector<Member>& members) {
  std::uint64_t size = tar_end().size();
  for (const Member& member : members) {
    size += tar_header(member.head).size() + member.head.size + tar_padding(member.head.size).size();
  }
  return size;
}

class Sender {
 public:
  Sender(net::ObjectStore& store, const BundleOptions& options) : store_(store), options_(options) {}

  BundleResult run() {
    check_target(options_.to);
    const std::vector<Member> members = members_of(options_.sources);
    result_.size = size_of_archive(members);
    net::ObjectUpload upload(store_, options_.to);
    for (const Member& member : members) send(upload, member);
    upload.write(bytes_of(tar_end()));
    upload.finish();
    result_.resumed_bytes = upload.reused();
    result_.checksum = upload.sent().checksum;
    result_.read_back = is_there_as(upload.sent());
    return result_;
  }

 private:
  void send(net::ObjectUpload& upload, const Member& member) {
    const std::string name = member.path.string();
    write(upload, name, bytes_of(tar_header(member.head)));
    if (member.head.folder) return;
    const MappedFile file(member.path);
    if (file.bytes().size() != member.head.size) {
      throw DataError(fmt::format("{}: changed while it was sent", name), "send it again when no program writes there");
    }
    for (std::uint64_t at = 0; at < member.head.size; at += kPiece) {
      write(upload, name, file.bytes().subspan(at, std::min(kPiece, member.head.size - at)));
    }
    write(upload, name, bytes_of(tar_padding(member.head.size)));
    ++result_.files;
    result_.bytes += member.head.size;
  }

  void write(net::ObjectUpload& upload, std::string_view name, ByteView bytes) {
    upload.write(bytes);
    done_ += bytes.size();
    if (options_.progress) options_.progress(name, done_, result_.size);
  }

  // Whether the bucket says so itself; who may write need not be let read.
  bool is_there_as(const net::ObjectState& sent) try {
    const net::ObjectState there = store_.state(options_.to);
    if (there.size == sent.size && (there.checksum.empty() || there.checksum == sent.checksum)) return true;
    throw DataError(fmt::format("{}: is not what was sent: {} bytes with checksum {} there, {} bytes with {} sent",
                                options_.to, there.size, there.checksum, sent.size, sent.checksum),
                    "send it again: does anybody else write to this name?");
  } catch (const net::AwsError& error) {
    if (error.facts().problem != net::AwsProblem::denied) throw;
    return false;
  }

  net::ObjectStore& store_;
  const BundleOptions& options_;
  BundleResult result_;
  std::uint64_t done_ = 0;
};

}  // namespace

BundleResult send_bundle(net::ObjectStore& store, const BundleOptions& options) { return Sender(store, options).run(); }

}  // namespace dtrain::data
