// Where the pictures of a COCO file are.
#pragma once

#include <string>
#include <vector>

#include <dtrain/data/coco.hpp>

namespace dtrain::data {

struct CocoPlace {
  Path root;                    // to which the names of the files are relative now
  std::string found_elsewhere;  // says that they are not where the file says; empty: they are
  std::string lost_hint;        // advice where none of them was found
};

// Gives the pictures the names that their files have below the returned root. Other programs write "file_name" with ./
// in front, with the backslashes of Windows, or relative to another folder than `root`: where no picture is there by
// its name, and all are in the folder above `root`, or in `root` without their folders, they are taken from there.
// The names of an archive are made plain and not looked up.
CocoPlace place_pictures(const Path& root, std::vector<CocoPicture>& pictures);

// Gives the pictures without "height" and "width" the size of their file, where it is a picture that can be read.
void read_missing_sizes(const Path& root, std::vector<CocoPicture>& pictures);

}  // namespace dtrain::data
