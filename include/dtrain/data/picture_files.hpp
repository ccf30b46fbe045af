// Pictures that are no records: files by the names that a user gives.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/net/objects.hpp>

namespace dtrain::data {

struct FoundPictures {
  std::vector<Path> files;
  std::vector<std::string> problems;  // folders that cannot be listed, links that lead nowhere: "PATH: reason"
};

// `spec` is a file, a folder, a pattern (* ? [...]) or an s3:// URL of one of these; `store` null: one is made where
// that is needed. A folder stands for the pictures below it, which their first bytes or endings show, in the order of
// their names, so that damaged ones and those of a kind that dtrain does not read are among them; hidden files must be
// pictures by their first bytes. Symbolic links are followed, but no folder counts twice. What lies beside a folder
// that cannot be listed is found.
// Behind s3:// a URL that ends in /, or that neither ends as a picture nor names an object, stands for the objects
// below it, which their endings show. A file that is named is not looked into. Throws DataError that says what is not
// there.
FoundPictures find_pictures(const std::string& spec, const std::shared_ptr<net::ObjectStore>& store = {});

// The whole file. Throws Error.
std::string read_picture(const Path& file, const std::shared_ptr<net::ObjectStore>& store = {});

// Whether NAME, which may hold folders, stays below the folder that add_new_file() writes to.
bool can_add_file(const Path& name);

// Writes the content as FOLDER/NAME, or where another file has that name, as NAME-2, NAME-3, ... before the ending. A
// file that has this content already is taken for it. Folders are made. Returns the path. Throws Error, also DataError
// where NAME, which may hold folders, would be written outside of FOLDER.
Path add_new_file(const Path& folder, const Path& name, const std::string& content);

}  // namespace dtrain::data
