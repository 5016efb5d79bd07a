import os

from acts import FOLDER, INPUT, outcome, tell, write, write_valid

frame = os.path.join(INPUT, "00000.png")
tell(
    root=outcome(write, "/x"),
    var_tmp=outcome(write, "/var/tmp/x"),
    passwd=outcome(write, "/etc/passwd"),
    script=outcome(write, __file__),
    frame=outcome(write, frame),
    beside_it=outcome(write, INPUT + "/x"),
    mode=outcome(os.chmod, frame, 0o666),
    removal=outcome(os.unlink, frame),
    devices=outcome(write, "/dev/x"),
    tmp=outcome(write, "/tmp/x"),
    output=outcome(write, FOLDER + "/x"),
    null=outcome(write, "/dev/null"),
)
write_valid()
