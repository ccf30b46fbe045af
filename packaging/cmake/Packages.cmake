# What is installed, and deb and rpm of it: `cpack -G DEB` and `cpack -G RPM` in a build folder. packaging/release.sh makes
# them so that two builds give the same bytes.
include(GNUInstallDirs)
set(share ${CMAKE_INSTALL_DATADIR})

install(TARGETS dtrain RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 FILES_MATCHING PATTERN "*.1")
install(DIRECTORY man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man5 FILES_MATCHING PATTERN "*.5")
install(FILES completions/dtrain.bash DESTINATION ${share}/bash-completion/completions RENAME dtrain)
install(FILES completions/dtrain.fish DESTINATION ${share}/fish/vendor_completions.d)
install(FILES completions/_dtrain DESTINATION ${share}/zsh/site-functions)
install(FILES packaging/copyright README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME changelog)
configure_file(packaging/changelog.in ${CMAKE_BINARY_DIR}/packaging/changelog.Debian @ONLY)

set(CPACK_PACKAGE_VENDOR "dtrain maintainers")
set(CPACK_PACKAGE_CONTACT "dtrain maintainers <maintainers@users.noreply.example.org>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "trains image models while workers join and leave")
set(CPACK_PACKAGE_DESCRIPTION
"dtrain trains image models on processors, on one machine or on many over ssh.
Workers may join, leave and die while it trains: neither a step nor a sample
is lost, and the weights are the same bits. It reads the record files and
takes the options of MXNet's image classification scripts, and starts
programs of other frameworks (PyTorch, TensorFlow, JAX, Horovod) the same way.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_GENERATOR DEB RPM)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_SOURCE_DIR}/packaging/cmake/PrePackage.cmake)
set(CPACK_DTRAIN_SOURCE ${CMAKE_CURRENT_SOURCE_DIR})
set(CPACK_DTRAIN_BINARY ${CMAKE_BINARY_DIR})

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS openssh-client)

set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_LICENSE "Apache-2.0 AND Bitstream-Vera")
set(CPACK_RPM_PACKAGE_DESCRIPTION "${CPACK_PACKAGE_DESCRIPTION}")
set(CPACK_RPM_PACKAGE_SUMMARY "Trains image models while workers join and leave")
set(CPACK_RPM_PACKAGE_AUTOREQ ON)
set(CPACK_RPM_PACKAGE_GROUP Applications/Engineering)
set(CPACK_RPM_CHANGELOG_FILE ${CMAKE_BINARY_DIR}/packaging/changelog.rpm)
configure_file(packaging/changelog.rpm.in ${CMAKE_BINARY_DIR}/packaging/changelog.rpm @ONLY)
set(CPACK_RPM_SPEC_MORE_DEFINE
"%define packager ${CPACK_PACKAGE_CONTACT}
%define _buildhost dtrain
%define use_source_date_epoch_as_buildtime 1
%define clamp_mtime_to_source_date_epoch 1
%define _build_id_links none")
foreach(folder /man /man/man1 /man/man5 /bash-completion /bash-completion/completions /fish /fish/vendor_completions.d /zsh
        /zsh/site-functions)
  list(APPEND CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION /usr/share${folder})
endforeach()
include(CPack)
